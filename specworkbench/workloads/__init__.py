"""Prompts by bucket: the shipped sets, a JSON Lines file of one's own, or Spec-Bench's and SPEED-Bench's questions."""

from specworkbench.workloads.prompts import SHIPPED, Prompt, buckets_of, load_prompts, shipped_for

__all__ = ["SHIPPED", "Prompt", "buckets_of", "load_prompts", "shipped_for"]
