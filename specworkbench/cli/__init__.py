"""The command line. `main` is the entry point; every command lies in a module of its own.

Importing this loads typer and rich only: a command imports what it needs when it runs.

Exit codes: 0; 1 where `check` found a broken contract, `equivalence` something against the implementation (or nothing
decided), `samples` a difference, or a cell of `study run` or `claims` failed; 2 for bad input (one sentence on standard
error); 130 when interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from specworkbench import ENGINE_PACKAGES, __version__
from specworkbench.cli.check import check
from specworkbench.cli.claims import claims
from specworkbench.cli.controllers import controllers
from specworkbench.cli.costs import costs
from specworkbench.cli.decode import decode
from specworkbench.cli.equivalence import equivalence
from specworkbench.cli.export import export
from specworkbench.cli.gap import gap
from specworkbench.cli.lab import lab
from specworkbench.cli.models import models
from specworkbench.cli.proposers import proposers
from specworkbench.cli.report import report
from specworkbench.cli.rules import rules
from specworkbench.cli.samples import samples
from specworkbench.cli.screen import INTERRUPTED, say, say_what_is_logged
from specworkbench.cli.study import study
from specworkbench.cli.table import table
from specworkbench.cli.train import train
from specworkbench.errors import InputError

PROGRAM = "specworkbench"
BAD_INPUT = 2
UsageError = typer.BadParameter.__base__  # typer carries a click of its own in some versions and not in others

app = typer.Typer(
    name=PROGRAM,
    help="A research workbench for speculative decoding: real decoding, full traces, exact checks.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(decode)
app.command()(models)
app.command()(proposers)
app.command()(rules)
app.command()(controllers)
app.command()(report)
app.command()(gap)
app.command()(costs)
app.command()(table)
app.command()(check)
app.command()(export)
app.command()(equivalence)
app.command()(samples)
app.add_typer(study, name="study")
app.command()(claims)
app.command()(train)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(lab)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line on sys.argv (or these arguments) and exit."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Bad input becomes a sentence on standard error, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    say_what_is_logged()
    try:
        code = app(arguments, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except typer.Exit as leave:
        return leave.exit_code
    except InputError as error:
        say(str(error))
    except UsageError as error:
        command = error.ctx.command_path if error.ctx else PROGRAM
        say(f"{error.format_message().rstrip('. ')}; see {command} --help")
    except ModuleNotFoundError as error:
        if error.name not in ENGINE_PACKAGES:
            raise
        say(f"this command needs {error.name}, which is not installed: pip install 'specworkbench[engine]'")
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return BAD_INPUT
