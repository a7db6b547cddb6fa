"""Formatting of measured numbers, and which of two is better."""

from bench.store import Line, Quantity

MORE_IS_BETTER = frozenset({"/s", "rows/s", "%"})


def shown(value: float, unit: str) -> str:
    """Three digits: 0.0123 s, 1.23 s, 12.3 s, 1,234 /s."""
    size = abs(value)
    digits = 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{digits}f} {unit}".rstrip()


def with_spread(quantity: Quantity | None, unit: str) -> str:
    """The median and, if it was taken more than once, the least and the greatest."""
    if quantity is None:
        return ""
    if quantity.repetitions == 1:
        return shown(quantity.median, unit)
    low, high = (shown(value, "") for value in quantity.spread)
    return f"{shown(quantity.median, unit)} ({low} to {high})"


def is_worse(line: Line) -> bool:
    """Whether the peer's figure is the better one, by the medians of the ratios."""
    if line.ratio is None:
        return False
    return line.ratio.median < 1 if line.unit in MORE_IS_BETTER else line.ratio.median > 1


def percent_kept(facts: dict[str, float]) -> float:
    """Of what was done before; no more than all of it."""
    before = facts["rate_before"]
    return min(100.0, 100 * facts["rate"] / before) if before else 0.0


def seconds_shown(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))} ms" if seconds < 1 else shown(seconds, "s")
