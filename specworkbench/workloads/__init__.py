"""Prompts by bucket: the shipped sets, or a JSON Lines file of one's own."""

from specworkbench.workloads.prompts import SHIPPED, Prompt, buckets_of, load_prompts

__all__ = ["SHIPPED", "Prompt", "buckets_of", "load_prompts"]
