"""Where a sequence ends inside a block: EOS and stop strings."""

from __future__ import annotations

from specworkbench.engine.models import LanguageModel


class Stopping:
    """Cuts a block of new tokens at the first EOS, or at the token that completes a stop string (both are kept)."""

    def __init__(self, target: LanguageModel, stop: tuple[str, ...], eos_ids: tuple[int, ...]):
        self.target, self.stop, self.eos_ids = target, stop, frozenset(eos_ids)
        # A token is at least one byte of text, or a special one: this many last tokens can hold a match.
        self.window = max((len(text.encode()) for text in stop), default=0) + 8

    def cut(self, block: list[int], output: list[int]) -> tuple[int, str | None]:
        """How many tokens of the block to keep after `output`, and why it was cut: eos, stop_string or None."""
        for kept, token in enumerate(block, start=1):
            if token in self.eos_ids:
                return kept, "eos"
            if self.stop and self._completes_stop([*output, *block[:kept]]):
                return kept, "stop_string"
        return len(block), None

    def _completes_stop(self, tokens: list[int]) -> bool:
        text = self.target.decode(tokens[-self.window :])
        return any(stop in text for stop in self.stop)
