"""The metrics of a node: its counters, the current state of the node and its catalog, in Prometheus' text format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from seachange import errors
from seachange.changer.job import read_job
from seachange.engine.context.meters import BOUNDS_US, CounterByName, Histogram
from seachange.engine.node.node import Node
from seachange.model.jobs import FINISHED, JobRecord, JobStatus
from seachange.runtime.filesystem import CacheFacts

_US = 1_000_000
_BOUNDS_S = tuple(bound / _US for bound in BOUNDS_US)
# For transaction control, and for text that is not a statement.
_OTHER = "other"

# The cause of a failure, by the longest matching prefix of its SQLSTATE.
_CAUSES = {
    "0A": "not supported",
    "08": "connection",
    "22": "value",
    "23": "constraint",
    "25": "transaction state",
    "28": "log-in",
    "40": "conflict",
    "40P01": "deadlock",
    "42": "statement",
    "42501": "privilege",
    "53": "resources",
    "55P03": "lock",
    "57014": "canceled",
    "57P": "shutdown",
    "58": "input or output",
    "72": "snapshot",
    "XX": "bug",
}
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Labels = Mapping[str, str]


def cause_of(sqlstate: str) -> str:
    """
    >>> cause_of("40001"), cause_of("40P01"), cause_of("99999")
    ('conflict', 'deadlock', 'other')
    """
    lengths = range(len(sqlstate), 1, -1)
    return next((_CAUSES[sqlstate[:length]] for length in lengths if sqlstate[:length] in _CAUSES), _OTHER)


def collect_metrics(node: Node, clients: int, strangers: int) -> Iterator[MetricFamily]:
    """`clients` are logged in, `strangers` are not yet. Reads the catalog, so it must not run on the event loop."""
    yield from _counted(node)
    yield from _held(node, clients, strangers)
    yield from _jobs(node.parts.catalog.jobs())


def _counted(node: Node) -> Iterator[MetricFamily]:
    meters = node.parts.meters
    statements = {command or _OTHER: histogram for command, histogram in sorted(meters.statements.items())}
    failures = sorted(meters.failures.read().items())
    refusals = meters.refusals.read()
    commits = meters.commits.read().count - sum(refusals.values())
    conflicts = sum(count for sqlstate, count in refusals.items() if sqlstate.startswith("40"))
    yield MetricFamily(
        "seachange_statement_seconds",
        "histogram",
        "Duration of statements, including their commit, by command.",
        tuple(sample for command, each in statements.items() for sample in _timed(each, command=command)),
    )
    yield MetricFamily(
        "seachange_statements_total",
        "counter",
        "Statements that have ended, successfully or not.",
        tuple(Sample(each.read().count, {"command": command}) for command, each in statements.items()),
    )
    yield MetricFamily(
        "seachange_aborts_total",
        "counter",
        "Statements that failed, with their transaction, by cause and SQLSTATE.",
        tuple(Sample(count, {"cause": cause_of(state), "sqlstate": state}) for state, count in failures),
    )
    yield MetricFamily("seachange_commit_seconds", "histogram", "Duration of commits.", _timed(meters.commits))
    yield _counter("seachange_commits_total", "Commits with writes.", commits)
    yield _counter("seachange_conflicts_total", "Commits refused because of a conflict, retried or not.", conflicts)
    drains = meters.drains.read()
    yield _counter("seachange_drains_total", "Waits of schema changes for older transactions.", drains.count)
    yield _counter("seachange_version_wait_seconds_total", "Total duration of these waits.", drains.sum_us / _US)
    yield _rows(meters.pipeline_rows)


def _held(node: Node, clients: int, strangers: int) -> Iterator[MetricFamily]:
    facts = node.statistics()
    holdings = node.parts.catalog.holdings()
    live = sum(record.live for record in node.parts.catalog.nodes())
    yield _counter("seachange_compactions_total", "Indexes that were compacted.", facts["compactions"])
    yield _gauge("seachange_connections", "Clients that are logged in.", clients)
    yield _gauge("seachange_connections_starting", "Clients that have not logged in yet.", strangers)
    yield _gauge("seachange_open_transactions", "Transactions that are open.", facts["open_transactions"])
    yield _gauge("seachange_applied_sequence", "The last commit that this node has applied.", facts["applied"])
    yield _gauge("seachange_nodes", "Nodes of the database that are alive.", live)
    yield _gauge("seachange_segments", "Files that the catalog refers to.", holdings.segments)
    yield _gauge("seachange_segment_bytes", "The size of these files.", holdings.bytes)
    yield _gauge("seachange_superseded_segments", "Files of these that only older snapshots need.", holdings.superseded)
    yield _gauge("seachange_gc_backlog_files", "Files that are to be deleted.", holdings.garbage)
    facts_of_cache = node.parts.files.facts()
    if facts_of_cache is not None:
        yield from _cached(facts_of_cache)


def _cached(facts: CacheFacts) -> Iterator[MetricFamily]:
    yield _gauge("seachange_cache_files", "Files in the cache of the object store.", facts.files)
    yield _gauge("seachange_cache_bytes", "The size of these files.", facts.size_bytes)
    yield _gauge("seachange_cache_pinned_files", "Files of these that a process may be reading.", facts.pinned)
    yield _gauge("seachange_cache_excerpt_bytes", "The size of the excerpts of this node.", facts.excerpt_bytes)
    yield _counter("seachange_cache_hits_total", "Requests for files that were in the cache.", facts.hits)
    yield _counter("seachange_cache_misses_total", "Requests for files that were downloaded.", facts.misses)
    yield _counter("seachange_cache_evictions_total", "Files that this node removed from the cache.", facts.evictions)
    yield _counter("seachange_store_read_bytes_total", "Bytes downloaded to the cache.", facts.downloaded_bytes)
    yield _counter("seachange_store_written_bytes_total", "Bytes of uploaded files.", facts.uploaded_bytes)


def _jobs(records: tuple[JobRecord, ...]) -> Iterator[MetricFamily]:
    counts = Counter(record.status for record in records)
    yield MetricFamily(
        "seachange_jobs",
        "gauge",
        "Jobs by status, including finished ones that are still kept.",
        tuple(Sample(counts[status], {"status": status.value}) for status in JobStatus),
    )
    progress: list[Sample] = []
    done: list[Sample] = []
    for record in records:
        if record.status in FINISHED:
            continue
        try:
            job = read_job(record)
        except errors.UnreadableJob:
            continue
        labels = {"job": str(record.id), "status": record.status.value}
        progress.append(Sample(job.fraction_done or 0, labels))
        done.append(Sample(job.rows_read, labels))
    yield MetricFamily(
        "seachange_job_progress", "gauge", "Fraction of a job that is done, from 0 to 1.", tuple(progress)
    )
    yield MetricFamily("seachange_job_rows", "gauge", "Rows that a job has read.", tuple(done))


def _rows(rows: CounterByName) -> MetricFamily:
    return _counter("seachange_pipeline_rows_total", "Rows that jobs of this node have read.", rows.total)


def _timed(histogram: Histogram, **labels: str) -> tuple[Sample, ...]:
    reading = histogram.read()
    return histogram_samples(_BOUNDS_S, reading.counts, reading.sum_us / _US, labels)


def _counter(name: str, what: str, value: float) -> MetricFamily:
    return MetricFamily(name, "counter", what, (Sample(value),))


def _gauge(name: str, what: str, value: float) -> MetricFamily:
    return MetricFamily(name, "gauge", what, (Sample(value),))


# The Prometheus text format, version 0.0.4.
@dataclass(frozen=True, slots=True)
class Sample:
    value: float
    labels: Labels | None = None
    # The suffix of the metric name, as in histograms.
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class MetricFamily:
    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    samples: tuple[Sample, ...]


def histogram_samples(
    bounds: Iterable[float], counts: Iterable[int], total: float, labels: Labels
) -> tuple[Sample, ...]:
    """`counts` has one more item than `bounds`."""
    samples, sum_of_counts = [], 0
    for bound, count in zip([*bounds, float("inf")], counts, strict=True):
        sum_of_counts += count
        samples.append(Sample(sum_of_counts, {**labels, "le": _number(bound)}, "_bucket"))
    return (*samples, Sample(total, labels, "_sum"), Sample(sum_of_counts, labels, "_count"))


def write_families(families: Iterable[MetricFamily]) -> str:
    """
    >>> print(write_families([MetricFamily("up", "gauge", "Alive.", (Sample(1, {"node": 'a"b'}),))]), end="")
    # HELP up Alive.
    # TYPE up gauge
    up{node="a\\"b"} 1
    """
    lines: list[str] = []
    for family in families:
        lines += (f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}")
        lines += (f"{family.name}{s.suffix}{_labels(s.labels)} {_number(s.value)}" for s in family.samples)
    return "\n".join([*lines, ""])


def _labels(labels: Labels | None) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items()) + "}"


def _number(value: float) -> str:
    """
    >>> _number(3), _number(0.25), _number(float("inf"))
    ('3', '0.25', '+Inf')
    """
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
