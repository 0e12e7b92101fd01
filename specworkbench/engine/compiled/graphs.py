"""The same functions on a GPU: their kernels captured once as a CUDA graph, then launched together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Capture = Callable[[Callable[[], Sequence[torch.Tensor]]], tuple[Callable[[], None], Sequence[torch.Tensor]]]
"""Runs a function once; gives what runs it again on the same memory, and the outputs that this overwrites."""


class Graph:
    """One function for one set of shapes; called with its changing tensors, it gives a list of new tensors.

    changing: tensors of the shapes that calls will bring, copied in at every call. What else the function reads is read
    where it lies. A call enqueues copies and one launch; it does not wait for the device.
    """

    def __init__(self, function: Callable[..., Any], changing: Sequence[torch.Tensor], capture: Capture | None = None):
        self._changing = [tensor.clone() for tensor in changing]
        self._replay, self._outputs = (capture or captured)(lambda: _flat(function(*self._changing)))

    def __call__(self, *changing: torch.Tensor) -> list[torch.Tensor]:
        for own, given in zip(self._changing, changing, strict=True):
            own.copy_(given, non_blocking=True)
        self._replay()
        return [output.clone() for output in self._outputs]


def captured(run: Callable[[], Sequence[torch.Tensor]]) -> tuple[Callable[[], None], Sequence[torch.Tensor]]:
    """`run` as a CUDA graph, after the warm-up on a stream of its own that capturing asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = run()
    return graph.replay, outputs


def _flat(outputs: Any) -> list[torch.Tensor]:
    return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
