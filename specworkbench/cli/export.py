"""`specworkbench export`: a trace in the words of vLLM or AIPerf."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.screen import say
from specworkbench.errors import InputError

Format = Annotated[
    str,
    opt.option(
        "--format",
        help="vllm: metrics.speculative_decoding of each request. aiperf: its SpecDecodeAcceptanceRecord.",
    ),
]


def export(
    traces: Annotated[list[str], typer.Argument(help="Trace files of one run: those of a report's prompts, or one.")],
    name: Format = "vllm",
    detailed: Annotated[bool, opt.option("--detailed", help="Also what each step proposed and accepted.")] = False,
    out: Annotated[str | None, opt.option("--out", help="Write to this file instead of standard output.")] = None,
) -> None:
    """Acceptance per request, a request being a sequence, and in total, as JSON.

    What counts as a step, and as accepted, is vLLM's: every round that proposed a token, before the output is cut.
    """
    from specworkbench.analysis.exports import FORMATS
    from specworkbench.analysis.exports import export as told
    from specworkbench.experiments.files import to_json, write_whole
    from specworkbench.experiments.recorded import is_plain, joined

    if name not in FORMATS:
        raise InputError(f"there is no format {name!r}; choose one of {', '.join(FORMATS)}")
    trace = joined(traces)
    text = to_json(told(trace, name, detailed=detailed), indent=1)
    if is_plain(trace):
        say("nothing was proposed in plain decoding; its requests have null where others have their acceptance")
    if out is None:
        print(text)
    else:
        say(f"written to {write_whole(Path(out), text + chr(10), 'the export')}")
