"""The one kind of error a person sees as a sentence."""

__all__ = ["InputError"]


class InputError(ValueError):
    """Bad input, told in one sentence: what was wrong, the value, the limit, what to do.

    >>> try:
    ...     raise InputError("gamma is 0; at least 1 token must be proposed")
    ... except ValueError as error:
    ...     print(error)
    gamma is 0; at least 1 token must be proposed
    """
