"""Which form of a product is the fastest here, by the shape of the weight and the number of rows: timed once and kept.

Times are kept in a file for each processor, number of threads, version of torch and dtype, so that the next load needs
no timing and chooses the same. Where the machine is too busy for several threads to be timed, the times of a single one
decide for now.
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil
import torch

from specworkbench.engine.machine import cpu_model
from specworkbench.engine.product_timing import Shape, Times, forget_weights, measured
from specworkbench.engine.products import FORMS, ROWS, Affine, Product
from specworkbench.errors import InputError
from specworkbench.files import whole_file
from specworkbench.paths import cache_dir

SMALL = 2**13
"""Weights of fewer entries are computed plainly: there is nothing to gain."""
TIE = 1.1
"""Forms within this factor of the fastest count as equally fast."""
FEW_ROWS, WORTH = 16, 1.2
"""A weight is copied where the fastest forms for 1 to FEW_ROWS rows, taken together, need so many times as long without
the copy."""
SHARE_OF_MEMORY = 0.5
"""Copies take at most so much of the memory that is free."""


class Calibration:
    """The fastest forms for weights of one dtype, on so many threads of this machine.

    folder: where times are kept; None: nowhere. measure: times a shape.
    """

    def __init__(
        self, dtype: torch.dtype, threads: int, folder: Path | None = None,
        measure: Callable[[Shape, torch.dtype, int], Times | None] = measured,
    ):  # fmt: skip
        self.dtype, self.threads, self.folder = dtype, threads, folder
        self._measure = measure
        self._times: dict[Shape, Times] = {}

    def products(self, affines: Sequence[Affine]) -> list[Product]:
        """The product of each by the forms that are the fastest for its shape."""
        counts = Counter(tuple(affine.weight.shape) for affine in affines if _is_timed(affine.weight))
        times = self.times(counts)
        copied = worth_copying(times, counts, self.dtype.itemsize, SHARE_OF_MEMORY * psutil.virtual_memory().available)
        forms = {shape: chosen(times[shape], copies=shape in copied) for shape in times}
        return [
            Product(*affine, forms[tuple(affine.weight.shape)] if _is_timed(affine.weight) else None)
            for affine in affines
        ]

    def times(self, shapes: Iterable[Shape]) -> dict[Shape, Times]:
        """Those of each shape: known, kept, or taken now."""
        shapes = list(shapes)
        if not self._times.keys() >= set(shapes):
            self._times |= self._kept()
        missing = [shape for shape in shapes if shape not in self._times]
        found: dict[Shape, Times] = {}
        for shape in missing:
            times = self._measure(shape, self.dtype, self.threads)
            if times is None:  # too busy for several threads to be timed
                alone = Calibration(self.dtype, 1, self.folder, self._measure)
                self._times |= alone.times(shape for shape in missing if shape not in found)
                break
            found[shape] = times
        if missing:
            forget_weights()
        self._times |= found
        self._keep(found)
        return {shape: self._times[shape] for shape in shapes}

    @property
    def machine(self) -> dict[str, Any]:
        """What times depend on beside the shape."""
        return {
            "cpu": cpu_model(),
            "threads": self.threads,
            "torch": torch.__version__,
            "dtype": str(self.dtype).removeprefix("torch."),
            "forms": list(FORMS),
            "rows": list(ROWS),
        }

    @property
    def file(self) -> Path | None:
        """Where times are kept: a file for each machine, as `machine` describes it."""
        digest = sha256(json.dumps(self.machine).encode()).hexdigest()[:12]
        return self.folder and self.folder / f"{digest}.json"

    def _kept(self) -> dict[Shape, Times]:
        """What the file holds; nothing where there is none, or it is damaged."""
        try:
            content = json.loads(self.file.read_text(encoding="utf-8")) if self.folder else {}
            if content.get("machine") != self.machine:
                return {}
            return {_shape(text): _times(by_rows) for text, by_rows in content["times"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def _keep(self, found: Mapping[Shape, Times]) -> None:
        """Add times to the file, beside those that another process has put there meanwhile."""
        if self.folder is None or not found:
            return
        kept = {"{}x{}".format(*shape): times for shape, times in sorted((self._kept() | dict(found)).items())}
        content = {"machine": self.machine, "times": kept}
        with contextlib.suppress(InputError), whole_file(self.file, "the times of products") as file:
            file.write((json.dumps(content, indent=1) + "\n").encode())


_calibration = lru_cache(Calibration)


def calibration_here(dtype: torch.dtype) -> Calibration:
    """The one of this process for a dtype and the present number of threads, kept under `cache_dir()`."""
    return _calibration(dtype, torch.get_num_threads(), cache_dir() / "products")


def forget_times() -> None:
    """Have the next load measure all forms anew: what was kept may have been taken while the machine was busy."""
    shutil.rmtree(cache_dir() / "products", ignore_errors=True)
    _calibration.cache_clear()


def chosen(times: Times, copies: bool) -> dict[int, str]:
    """The form for each of ROWS: the first of FORMS among the fastest. copies: whether the weight may be copied."""
    forms = {}
    for rows, of_form in times.items():
        usable = {name: time for name, time in of_form.items() if copies or not FORMS[name].copies}
        limit = TIE * min(usable.values())
        forms[rows] = next(name for name in FORMS if usable.get(name, math.inf) <= limit)
    return forms


def gain(times: Times) -> float:
    """Time without a copy of the weight over time with it, 1 to FEW_ROWS rows together."""
    few = [of_form for rows, of_form in times.items() if rows <= FEW_ROWS]
    without = sum(min(time for name, time in of_form.items() if not FORMS[name].copies) for of_form in few)
    return without / sum(min(of_form.values()) for of_form in few)


def worth_copying(times: Mapping[Shape, Times], counts: Mapping[Shape, int], itemsize: int, room: float) -> set[Shape]:
    """The shapes whose weights are copied: with a gain of WORTH and more, the largest first, into `room` bytes.

    counts: weights of each shape; itemsize: bytes of an entry.
    """
    copied = set()
    for shape in sorted(times, key=lambda shape: -gain(times[shape])):
        size = counts[shape] * math.prod(shape) * itemsize
        if gain(times[shape]) >= WORTH and size <= room:
            room -= size
            copied.add(shape)
    return copied


def _is_timed(weight: torch.Tensor) -> bool:
    return weight.numel() >= SMALL and weight.is_contiguous()


def _shape(text: str) -> Shape:
    out, width = map(int, text.split("x"))
    return out, width


def _times(by_rows: dict[str, dict[str, float]]) -> Times:
    """Times as they were kept. Raises `ValueError` for what cannot be times."""
    times = {int(rows): {name: float(time) for name, time in of_form.items()} for rows, of_form in by_rows.items()}
    whole = all("plain" in of_form and of_form.keys() <= FORMS.keys() for of_form in times.values())
    positive = all(0 < time < math.inf for of_form in times.values() for time in of_form.values())
    if not (list(times) == list(ROWS) and whole and positive):
        raise ValueError("damaged times of products")
    return times
