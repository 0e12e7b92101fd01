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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import nn

from specworkbench.engine.compiled.graphs import Graph
from specworkbench.errors import InputError
from specworkbench.paths import cache_dir

logger = logging.getLogger(__name__)
INDUCTOR = {
    "aot_inductor.package_constants_in_so": False,
    "cpp.enable_floating_point_contract_flag": "fast",
    "cpp.max_horizontal_fusion_size": 64,
}
"""Weights stay outside; a product and a sum may become one instruction, which rounds once; all sums of a product are
taken side by side."""


@dataclass(frozen=True)
class Cost:
    """What having one program took: seconds of compiling, or of loading one that was kept."""

    name: str
    seconds: float
    kept: bool


class Program:
    """One function for one set of shapes; called with its tensors, it gives a list of them. constants: see `Build`."""

    def __init__(self, package: Path, constants: dict[str, torch.Tensor]):
        self._loaded = torch._inductor.aoti_load_package(str(package))
        names = self._loaded.get_constant_fqns()
        self._constants = {name: constants[name] for name in names}  # the program holds no reference of its own
        if names:
            self._loaded.load_constants(self._constants, check_full_update=True, user_managed=True)
        self._run = self._loaded.loader.boxed_run

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return self._run([*inputs])


@dataclass(frozen=True)
class Build:
    """What a program is made of: a module, example inputs, and the parameters it reads.

    name: what it is, in words; describe: all that its code depends on besides the engine's code, this machine, and the
    shapes of its tensors; changing: tensors that every call brings anew; fixed: those after them (tensors, or lists of
    tensors), which stay where they are on a GPU.
    """

    name: str
    module: nn.Module
    describe: dict[str, Any]
    changing: tuple[torch.Tensor, ...]
    fixed: tuple[Any, ...] = ()

    @property
    def constants(self) -> dict[str, torch.Tensor]:
        """What a loaded program reads: the module's parameters, by name."""
        return {name: parameter.detach() for name, parameter in self.module.named_parameters()}


class Programs:
    """The programs of one model or rule: made when first asked for, then held.

    costs: what each took, in the order they came to be.
    """

    def __init__(self) -> None:
        self.costs: list[Cost] = []
        self._held: dict[Any, Program | Graph] = {}

    def get(self, key: Any, build: Callable[[], Build]) -> Program | Graph:
        """The program held under `key`, made of what `build` gives when there is none."""
        if key not in self._held:
            started = perf_counter()
            with torch.inference_mode(False), torch.no_grad():
                made = build()
                self._held[key], kept = _made(made)
            self.costs.append(cost := Cost(made.name, perf_counter() - started, kept))
            if not kept:
                logger.info("compiled %s in %.1f s", cost.name, cost.seconds)
        return self._held[key]


def _made(build: Build) -> tuple[Program | Graph, bool]:
    """A program or graph, and whether it was kept on disk."""
    if build.changing[0].is_cuda:
        return Graph(lambda *changing: build.module(*changing, *build.fixed), build.changing), False
    package, kept = _package(build)
    try:
        return _loaded(package, build.constants), kept
    except RuntimeError:
        if not kept:
            raise
    package.unlink(missing_ok=True)  # damaged, or made by something else
    return _loaded(_package(build)[0], build.constants), False


def _loaded(package: Path, constants: dict[str, torch.Tensor]) -> Program:
    return Program(package, constants) if constants else _shared(package)


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
        raise InputError(f"the engine compiled needs torch 2.13 or newer, not {torch.__version__}: use engine eager")
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


def _package(build: Build) -> tuple[Path, bool]:
    """The package of this program, and whether it was kept from before."""
    package = programs_dir() / f"{_fingerprint(build)}.pt2"
    if package.exists():
        return package, True
    check_can_compile()
    logger.info("compiling %s, to be kept in %s", build.name, package.parent)
    package.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=package.parent, prefix=".making-") as folder, _quiet():
        exported = torch.export.export(build.module, (*build.changing, *build.fixed), strict=False)
        made = Path(folder) / package.name
        torch._inductor.aoti_compile_and_package(exported, package_path=str(made), inductor_configs=INDUCTOR)
        os.replace(made, package)
    return package, False


def _fingerprint(build: Build) -> str:
    """Names what is compiled: two programs of one fingerprint compute the same on the same machine."""
    tensors = torch.utils._pytree.tree_leaves((build.changing, build.fixed, build.constants))
    depends = [build.describe, [_kind(tensor) for tensor in tensors], _machine(), _code()]
    return hashlib.sha256(json.dumps(depends, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _kind(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What a program depends on of a tensor: shape, strides (of a dimension of one entry there is none), dtype."""
    strides = tuple(stride * (size > 1) for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tuple(tensor.shape), strides, str(tensor.dtype)


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
