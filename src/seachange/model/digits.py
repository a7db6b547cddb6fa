"""How many digits a number has behind its point, of its text."""

from __future__ import annotations


def count_decimals(text: str) -> int:
    """
    >>> count_decimals("8.410"), count_decimals("8")
    (3, 0)
    """
    return len(text.partition(".")[2])


def count_needed_decimals(text: str) -> int:
    """
    >>> count_needed_decimals("8.4100"), count_needed_decimals("10")
    (2, 0)
    """
    return len(text.partition(".")[2].rstrip("0"))
