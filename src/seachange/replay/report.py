"""The report of a replay, as text lines and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from seachange.replay.perform import PieceOutcome, Verdict
from seachange.replay.run import Replay

_TEXT_MAX = 96
_PERCENTILES = (50, 99)
# Constraint violations are expected: a few examples are enough.
_REFUSALS_MAX = 3
_EXAMPLE_MAX = 240


def outcome_lines(outcome: PieceOutcome) -> Iterator[str]:
    """One line for a statement, and one more if it was refused."""
    place = f"{outcome.migration}:{outcome.line}"
    how = outcome.strategy if outcome.verdict is Verdict.ACCEPTED else outcome.verdict.upper()
    yield f"{outcome.time_us / 1_000:9.1f} ms  {how:<21}  {place}  {one_line(outcome.text)}"
    if outcome.verdict is Verdict.REFUSED:
        yield f"{'':14}{outcome.sqlstate}: {one_line(outcome.message, None)}"


def one_line(text: str, length_max: int | None = _TEXT_MAX) -> str:
    """The text on one line, shortened if necessary.

    >>> one_line("create table t (\\n  id bigint\\n)")
    'create table t ( id bigint )'
    """
    flat = " ".join(text.split())
    return flat if length_max is None or len(flat) <= length_max else flat[: length_max - 3] + "..."


def migration_times(outcomes: Iterable[PieceOutcome]) -> dict[str, tuple[int, int]]:
    """The duration of each migration in microseconds, and its number of statements.

    >>> begin, alter = (PieceOutcome("01.sql", 1, text, Verdict.ACCEPTED, 40) for text in ("begin", "alter"))
    >>> migration_times([begin, alter])
    {'01.sql': (80, 2)}
    """
    times: dict[str, tuple[int, int]] = {}
    for outcome in outcomes:
        spent_us, statements = times.get(outcome.migration, (0, 0))
        times[outcome.migration] = (spent_us + outcome.time_us, statements + 1)
    return times


def summary_lines(replay: Replay) -> Iterator[str]:
    times = migration_times(replay.outcomes)
    for name, (spent_us, statements) in times.items():
        yield f"{spent_us / 1_000:9.1f} ms  {statements:3} statement{'s' if statements > 1 else ' '}  {name}"
    migrations = len(times)
    counts = ", ".join(f"{replay.count(verdict)} {verdict}" for verdict in Verdict)
    spent = sum(outcome.time_us for outcome in replay.outcomes) / 1_000_000
    yield f"history: {replay.naming} naming, {migrations} migrations; {counts}; {spent:.1f} s in statements"
    for name in replay.left_out:
        yield f"not run: {name}"
    strategies = Counter(o.strategy for o in replay.outcomes if o.strategy and o.verdict is Verdict.ACCEPTED)
    if strategies:
        yield f"strategies: {', '.join(f'{number} {name}' for name, number in strategies.most_common())}"
    tally = replay.tally
    done = ", ".join(f"{number} {name}s" for name, number in sorted(tally.actions.items()))
    yield f"foreground: {tally.done} transactions done ({done or 'none'}), {_codes(tally.failed)} failed"
    yield f"foreground: {_codes(tally.refused)} refused by a constraint; latency {_latency(replay)}"
    for example in tally.examples_of(tally.failed):
        yield f"failed: {one_line(example, None)}"
    for example in tally.examples_of(tally.refused)[:_REFUSALS_MAX]:
        yield f"refused, as an example: {one_line(example, _EXAMPLE_MAX)}"
    yield from (f"anomaly: {anomaly}" for anomaly in replay.anomalies)
    yield f"check: {f'{len(replay.anomalies)} anomalies' if replay.anomalies else 'consistent'}"
    if replay.differences is not None:
        yield from replay.differences
        found = f"{len(replay.differences)} differences" if replay.differences else "as expected"
        yield f"schema: {found}"


def _codes(counts: Counter[str]) -> str:
    """A total with its parts by SQLSTATE.

    >>> _codes(Counter({"23505": 3}))
    '3 (23505: 3)'
    """
    each = ", ".join(f"{code}: {number}" for code, number in sorted(counts.items()))
    return f"{counts.total()} ({each})" if counts else "0"


def _latency(replay: Replay) -> str:
    tally = replay.tally
    parts = [f"p{percent} {tally.percentile_ms(percent):.1f} ms" for percent in _PERCENTILES]
    return ", ".join([*parts, f"max {tally.percentile_ms(100):.1f} ms"])


def to_json(replay: Replay, is_good: bool) -> dict[str, Any]:
    tally = replay.tally
    return {
        "good": is_good,
        "naming": replay.naming,
        "not_run": list(replay.left_out),
        "migrations": [
            {"name": name, "ms": spent_us / 1_000, "statements": statements}
            for name, (spent_us, statements) in migration_times(replay.outcomes).items()
        ],
        "statements": [_statement(outcome) for outcome in replay.outcomes],
        "foreground": {
            "done": tally.done,
            "actions": dict(tally.actions),
            "failed": dict(tally.failed),
            "refused_by_constraint": dict(tally.refused),
            "examples": tally.examples,
            **{f"p{percent}_ms": tally.percentile_ms(percent) for percent in (*_PERCENTILES, 100)},
        },
        "anomalies": replay.anomalies,
        "schema_differences": replay.differences,
    }


def _statement(outcome: PieceOutcome) -> dict[str, Any]:
    return {
        "migration": outcome.migration,
        "line": outcome.line,
        "statement": outcome.text,
        "verdict": outcome.verdict,
        "ms": outcome.time_us / 1_000,
        "strategy": outcome.strategy or None,
        "sqlstate": outcome.sqlstate or None,
        "message": outcome.message or None,
        "hint": outcome.hint or None,
        "notices": list(outcome.notices),
    }
