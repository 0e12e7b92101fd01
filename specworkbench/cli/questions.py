"""The prompts a command decodes, and what the user must know of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specworkbench.cli.screen import say

if TYPE_CHECKING:
    from specworkbench.workloads import Prompt


def prompts_asked_for(asked: str | None, target: str, per_bucket: int | None = None) -> tuple[str, list[Prompt]]:
    """Where the prompts come from, and the prompts: those asked for, else the shipped ones that suit the target.

    Says on standard error how many later turns of conversations were left out. Raises `InputError` as `load_prompts`.
    """
    from specworkbench.workloads import load_prompts, shipped_for

    source = asked or shipped_for(target)
    prompts = load_prompts(source, per_bucket=per_bucket)
    if later := sum(prompt.later_turns for prompt in prompts):
        say(
            f"of {sum(prompt.later_turns > 0 for prompt in prompts)} of {len(prompts)} prompts the first turn alone is "
            f"decoded; {later} later turns, which would follow the model's own answers, are left out"
        )
    return source, prompts
