"""The results as a text table and as JSON."""

from collections.abc import Sequence

from bench.harness import Bound, Reading, Result, Sample

HEADER = ("measure", "Seachange", "peer", "ratio", "bound", "result", "")


def print_table(results: Sequence[Result]) -> None:
    lines = [HEADER, *(cells(result) for result in results)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


def cells(result: Result) -> tuple[str, ...]:
    reading = result.reading
    return (
        result.name,
        "" if reading is None else quantity(reading.subject, reading.unit),
        "" if reading is None or reading.peer is None else quantity(reading.peer, reading.unit),
        "" if reading is None or reading.ratio is None else f"{reading.ratio.median:.2f}",
        "" if result.bound is None else limit(result.bound),
        result.verdict,
        result.reason if reading is None else reading.note,
    )


def quantity(sample: Sample, unit: str) -> str:
    value = sample.median
    digits = 0 if value >= 1000 else 1 if value >= 100 else 3
    return f"{value:,.{digits}f} {unit}".rstrip()


def limit(bound: Bound) -> str:
    return f"{bound.relation} {bound.limit:,g}"


def result_json(result: Result) -> dict[str, object]:
    bound = result.bound
    return {
        "name": result.name,
        "result": result.verdict,
        "reason": result.reason,
        "facts": dict(result.facts),
        "bound": None if bound is None else {"relation": bound.relation, "limit": bound.limit},
        **({} if result.reading is None else reading_json(result.reading)),
    }


def reading_json(reading: Reading) -> dict[str, object]:
    return {
        "unit": reading.unit,
        "subject": sample_json(reading.subject),
        "peer": sample_json(reading.peer),
        "ratio": sample_json(reading.ratio),
        "note": reading.note,
    }


def sample_json(sample: Sample | None) -> dict[str, object] | None:
    if sample is None:
        return None
    return {
        "median": sample.median,
        "spread": sample.spread,
        "repetitions": len(sample.values),
        "values": sample.values,
    }
