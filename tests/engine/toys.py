"""Small random models with the real code: a few letters of vocabulary, float64, everything through transformers."""

from specworkbench.equivalence.toys import LETTERS, toy_model, toy_tokenizer

__all__ = ["LETTERS", "toy_model", "toy_tokenizer"]
