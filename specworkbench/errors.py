"""The one kind of error a person sees as a sentence."""


class InputError(ValueError):
    """Bad input, told in one sentence: what was wrong, the value, the limit, what to do."""
