"""What a level, a power or a margin may be."""

from __future__ import annotations

from specworkbench.errors import InputError


def check_level(level: float, name: str = "level") -> None:
    """Raises `InputError` for what is not above 0 and below 1. name: what it is called in the sentence.

    >>> check_level(0.001)
    >>> check_level(5, "margin")
    Traceback (most recent call last):
    specworkbench.errors.InputError: margin is 5; it must be above 0 and below 1
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"{name} is {level:g}; it must be above 0 and below 1")
