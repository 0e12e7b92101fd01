"""The parts of a task: its target, its two decoders, and its prompts as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specworkbench.engine import Decoder, DecodeSettings, LanguageModel, SamplingSettings, load_model
from specworkbench.errors import InputError
from specworkbench.experiments.models import Models
from specworkbench.experiments.plan import ProposerSpec
from specworkbench.experiments.study.grid import DEFAULT
from specworkbench.experiments.study.task import Task
from specworkbench.workloads import Prompt

PLAIN, SPECULATIVE = "plain", "speculative"


def target_of(task: Task, device: str | None = None, engine: str | None = None) -> LanguageModel:
    """The target of a task, loaded. device, engine: instead of the study's own."""
    cell, study = task.cell, task.study
    return load_model(
        cell.target, dtype=None if cell.dtype == DEFAULT else cell.dtype, device=device or study.device or None,
        fused=study.fused, products=study.products, engine=engine or cell.engine, quantisation=cell.quantisation,
    )  # fmt: skip


def decoders(models: Models, task: Task) -> dict[str, Decoder]:
    """One that decodes plainly and one that speculates, under the same settings and seed."""
    cell, settings = task.cell, decode_settings(task)
    proposer = models.proposer(ProposerSpec.parse(cell.proposer))
    same: dict[str, Any] = {"settings": settings, "seed": cell.seed, "chat": task.study.chat}
    rule = None if cell.rule == DEFAULT else cell.rule
    return {
        PLAIN: Decoder(models.target, **same),
        SPECULATIVE: Decoder(models.target, proposer, rule=rule, controller=cell.controller, **same),
    }


def decode_settings(task: Task) -> DecodeSettings:
    cell = task.cell
    sampling = SamplingSettings(temperature=cell.temperature, top_k=cell.top_k, top_p=cell.top_p)
    return DecodeSettings(cell.gamma, cell.max_new_tokens, sampling, ignore_eos=task.study.ignore_eos)


def prompts_as_ids(target: LanguageModel, task: Task) -> list[list[int]]:
    """The tokens of every prompt of a task; see `prompt_ids`."""
    length, chat = task.cell.prompt_length, task.study.chat
    return [prompt_ids(target, task.prompts, number, length, chat) for number in range(len(task.prompts))]


def prompt_ids(target: LanguageModel, prompts: Sequence[Prompt], number: int, length: int, chat: bool) -> list[int]:
    """The tokens of prompt `number`: as they are where length is 0, else so many.

    The end of a prompt is what is continued, so it is cut at its beginning. Where it is too short, the prompts before
    it in its bucket go in front, one after the other and round again. Special tokens that the tokenizer puts in front
    (such as a BOS) stay there, once. Raises `InputError` where the length leaves no room beside these.
    """
    if not length:
        return target.encode(prompts[number].text, chat)
    start, ids = _split(target, prompts[number].text)
    room = length - len(start)
    if room < 1:
        raise InputError(f"prompt_length is {length}, and {target.name} puts {len(start)} special tokens in front")
    others = [prompt for prompt in prompts if prompt.bucket == prompts[number].bucket]
    at = others.index(prompts[number])
    while len(ids) < room:
        at -= 1
        before = _split(target, others[at % len(others)].text)[1]
        if not before:
            raise InputError(f"prompt {others[at % len(others)].id!r} has no tokens to fill up with")
        ids = before + ids
    return start + ids[-room:]


def _split(target: LanguageModel, text: str) -> tuple[list[int], list[int]]:
    """The special tokens at the start, and the others."""
    ids, special = target.encode(text), set(target.tokenizer.all_special_ids)
    first = next((index for index, token in enumerate(ids) if token not in special), len(ids))
    return ids[:first], ids[first:]
