"""Tensor functions of a round, compiled for the sizes that most rounds have; any other call runs them as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from specworkbench.engine.compiled.programs import Build, Programs

Function = Callable[..., Any]
"""Tensors in, a tensor or a tuple of tensors out, without a branch on a value."""


class CompiledFunction:
    """`function`, compiled for each kind of inputs whose first tensor has one of the `sizes` expected.

    describe: all that its code depends on besides the shapes of its inputs, such as the settings it closes over.
    """

    def __init__(self, function: Function, name: str, sizes: Iterable[int], programs: Programs, describe: Any = None):
        self.function, self.name, self.sizes = function, name, frozenset(sizes)
        self._programs, self._describe = programs, describe

    def __call__(self, *inputs: torch.Tensor) -> Any:
        if inputs[0].shape[0] not in self.sizes:
            return self.function(*inputs)
        kinds = tuple([(tensor.shape, tensor.stride(), tensor.dtype) for tensor in inputs])
        program = self._programs.get((self.name, kinds), lambda: self._build(inputs))
        outputs = program(*inputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _build(self, inputs: tuple[torch.Tensor, ...]) -> Build:
        """Of inputs of the same kinds, but not of these: one that was made in inference mode cannot be exported."""
        empty = tuple(
            torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).zero_()
            for tensor in inputs
        )
        name = f"{self.name} over {inputs[0].shape[0]}"
        return Build(name, _Module(self.function), {"function": self.name, "of": self._describe}, empty)


class _Module(nn.Module):
    def __init__(self, function: Function):
        super().__init__()
        self._function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self._function(*inputs)
