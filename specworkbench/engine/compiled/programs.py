"""Pure functions of tensors, compiled ahead of time for fixed shapes by torch's AOTInductor and kept on disk.

A call of one costs some microseconds: there is no Python between its operations, and nothing is guarded. It is kept
under a name that holds everything it depends on: the engine's code, torch, the processor, threads, shapes. Weights are
not part of it; they are handed to it when it is loaded, and shared with the model.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import nn

from specworkbench.errors import InputError
from specworkbench.paths import cache_dir

logger = logging.getLogger(__name__)
INDUCTOR = {"aot_inductor.package_constants_in_so": False, "cpp.enable_floating_point_contract_flag": "fast"}
"""Weights stay outside; a product and a sum may become one instruction, which rounds once."""


@dataclass(frozen=True)
class Cost:
    """What having one program took: seconds of compiling, or of loading one that was kept."""

    name: str
    seconds: float
    kept: bool


class Program:
    """One function for one set of shapes; called with its tensors, it gives a list of tensors.

    constants: {name: tensor} in place of the module's buffers of these names. Such a tensor may be one that oneDNN has
    packed, where the buffer is the plain weight.
    """

    def __init__(self, package: Path, constants: dict[str, torch.Tensor]):
        self._loaded = torch._inductor.aoti_load_package(str(package))
        names = self._loaded.get_constant_fqns()
        self._constants = {name: constants[name] for name in names}  # the program holds no reference of its own
        if names:
            self._loaded.load_constants(self._constants, check_full_update=True, user_managed=True)
        self._run = self._loaded.loader.boxed_run

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return self._run([*inputs])


class Programs:
    """The programs of one model or rule: made when first asked for, then held.

    costs: what each took, in the order they came to be.
    """

    def __init__(self) -> None:
        self.costs: list[Cost] = []
        self._held: dict[Any, Program] = {}

    def get(
        self, key: Any, name: str, build: Callable[[], tuple[nn.Module, tuple[Any, ...], dict[str, torch.Tensor]]],
        describe: dict[str, Any],
    ) -> Program:  # fmt: skip
        """The program held under `key`. `build` gives the module, inputs of its shapes, and its constants; `describe`
        says all that the compiled code depends on besides the engine's code and this machine."""
        if key not in self._held:
            started = perf_counter()
            with torch.inference_mode(False), torch.no_grad():
                module, inputs, constants = build()
                package, kept = _package(name, module, inputs, describe)
                self._held[key] = Program(package, constants) if constants else _shared(package)
            self.costs.append(Cost(name, perf_counter() - started, kept))
        return self._held[key]


@cache
def _shared(package: Path) -> Program:
    """A program without constants, loaded once for all."""
    return Program(package, {})


def programs_dir() -> Path:
    """The folder in which compiled programs are kept."""
    return cache_dir() / "programs"


def check_can_compile() -> None:
    """Raises `InputError` where programs cannot be made here: an older torch, no C++ compiler."""
    from torch._inductor import config

    if not _takes_weights():
        raise InputError(f"the engine compiled needs torch 2.13 or newer, here is {torch.__version__}; use engine eager")
    compiler = os.environ.get("CXX") or config.cpp.cxx[1]
    if shutil.which(compiler) is None:
        raise InputError(
            f"the engine compiled needs a C++ compiler and there is no {compiler} here; install one (apt install g++), "
            "name one in CXX, or use engine eager"
        )


def _takes_weights() -> bool:
    """Whether this torch hands weights to a program that it has loaded."""
    try:
        from torch.export.pt2_archive._package import AOTICompiledModel
    except ImportError:
        return False
    return "user_managed" in inspect.signature(AOTICompiledModel.load_constants).parameters


def _package(name: str, module: nn.Module, inputs: Sequence[Any], describe: dict[str, Any]) -> tuple[Path, bool]:
    """The package of this module for inputs of these shapes, and whether it was kept from before."""
    package = programs_dir() / f"{_fingerprint(module, inputs, describe)}.pt2"
    if package.exists():
        return package, True
    check_can_compile()
    logger.info("compiling %s; it is kept in %s", name, package.parent)
    package.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=package.parent, prefix=".making-") as folder, _quiet():
        exported = torch.export.export(module, tuple(inputs), strict=False)
        made = Path(folder) / package.name
        torch._inductor.aoti_compile_and_package(exported, package_path=str(made), inductor_configs=INDUCTOR)
        os.replace(made, package)
    return package, False


def _fingerprint(module: nn.Module, inputs: Sequence[Any], describe: dict[str, Any]) -> str:
    """Names what was compiled: two modules of one fingerprint compute the same on the same machine."""
    shapes = [
        (tuple(tensor.shape), tensor.stride(), str(tensor.dtype))
        for tensor in torch.utils._pytree.tree_leaves((inputs, dict(module.named_buffers())))
    ]
    said = json.dumps([type(module).__qualname__, describe, shapes, _machine(), _code()], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def _machine() -> list[Any]:
    return [torch.__version__, torch.backends.cpu.get_cpu_capability(), _processor(), torch.get_num_threads()]


@cache
def _processor() -> str:
    """The processor's model and features, for which code is generated."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return "\n".join(dict.fromkeys(line for line in lines if line.startswith(("model name", "flags"))))
    import platform

    return platform.processor()


@cache
def _code() -> str:
    """A digest of the engine's own code: any change of it makes programs anew."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch warns of in its own code while exporting."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
