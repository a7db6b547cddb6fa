"""The topics of the benchmarks and the peers of their readings, as data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    title: str
    text: str


# In the order of the page. The headline has a section of its own.
TOPICS = (
    Topic(
        "evolution",
        "Repeated schema changes",
        "A column is added, the previous one dropped, and so on, while a session works on the table as fast as it can:"
        " its throughput, relative to that on a table that is not altered. Rows keep the layouts that they were written"
        " in. Seachange's session is embedded in its process, PostgreSQL's talks to a server.",
    ),
    Topic(
        "foreground",
        "Load during a long change",
        "One node's transactions while another node builds an index on the table, relative to the same transactions"
        " before.",
    ),
    Topic(
        "aborts",
        "Transactions that fail because the schema changed",
        "Transactions that were open while the table was altered; and under load from several nodes.",
    ),
    Topic("changes", "Metadata-only changes", "A large table relative to a small one, and while other nodes write."),
    Topic("blocks", "Schema changes in transaction blocks", "BEGIN, changes and rows, COMMIT or ROLLBACK."),
    Topic("builds", "Changes that move rows", "One index, two indexes, a type change; sessions and Spark are warm."),
    Topic("validations", "Changes that read rows", "The whole statement, over existing rows."),
    Topic(
        "growth",
        "Scaling",
        "With rows, columns, layouts and commits: the larger relative to the smaller. The cost of a killed process.",
    ),
    Topic(
        "estimates",
        "Estimates of EXPLAIN (DDL, COST)",
        "Each statement of the [catalogue](ddl.md) on tables with random texts and numbers, with sequential ones and"
        " with few distinct ones: what was expected over what the statement then took, and how far the worst estimate"
        " is off. Times depend on the load of the machine and on the commits of the job.",
    ),
    Topic("commits", "Durable commits of one row", "One session, one row per commit, on a new table."),
    Topic(
        "processes", "Many writers", "Processes on one table, and sessions of one process, relative to a single one."
    ),
    Topic("contention", "Hot rows", "Clients that write the same few rows, on one node and on one node each."),
    Topic("statements", "Overhead of SQL", "A prepared statement by key, relative to the same change without SQL."),
    Topic("points", "Point reads", "By primary key."),
    Topic("seeks", "Index lookups", "Relative to scans for the same rows."),
    Topic("scans", "Scans of updated tables", "Aggregates over a table with a few updated rows."),
    Topic("tpch", "TPC-H", "The geometric mean of the times of all queries."),
    Topic(
        "lake",
        "Object stores",
        "A database in an object store (an S3 server of the same machine) with warm and with empty caches, relative to"
        " a folder, and to DuckDB 1.5.5 with httpfs on the same files.",
    ),
    Topic("bulk", "Bulk loads", "Unsorted rows into a table with a primary key."),
    Topic("constraints", "Constraints on bulk writes", "INSERT ... SELECT with constraints, relative to without."),
    Topic(
        "server", "Over the protocol", "The same requests by the same client to Seachange's server and PostgreSQL's."
    ),
    Topic(
        "pgbench",
        "pgbench",
        "PostgreSQL's own benchmark, on both servers in turns: its scripts of one SELECT (read), of three statements"
        " (write) and of five (tpcb), with one client and with eight, over the extended or the simple protocol.",
    ),
    Topic("planner", "Planning", "A thousand objects relative to a hundred."),
)

DUCKDB = "DuckDB on Parquet"

# By the longest prefix of a reading's name; other readings are compared with Seachange itself.
PEERS = {
    "commits.deltalake": "deltalake",
    "commits.pyiceberg": "pyiceberg",
    "commits.ducklake_duckdb": "DuckLake",
    "commits.ducklake_sqlite": "DuckLake, SQLite",
    "scans": DUCKDB,
    "points": DUCKDB,
    "bulk.load": DUCKDB,
    "tpch": DUCKDB,
    "lake.cold": "DuckDB with httpfs",
    "validations.check": DUCKDB,
    "builds.index.duckdb": DUCKDB,
    "builds.index.spark_sql": "Spark SQL",
    "builds.index.postgresql": "PostgreSQL",
    "builds.conversion": "PostgreSQL",
    "changes.live.sqlite.ducklake": "DuckLake",
    "changes.live.postgresql.ducklake": "DuckLake",
    "blocks.columns.one": "PostgreSQL",
    "server.constant": "PostgreSQL",
    "server.keyed": "PostgreSQL",
    "server.result": "PostgreSQL",
    "server.copy": "PostgreSQL",
    "pgbench": "PostgreSQL",
    "evolution": "PostgreSQL",
}

SYSTEMS = {
    "seachange": "Seachange",
    "postgresql_plain": "PostgreSQL",
    "postgresql_careful": "PostgreSQL, careful",
    "postgresql_batched": "PostgreSQL, batched",
    "ducklake": "DuckLake",
    "deltalake": "Delta (deltalake)",
}


def peer_of(reading: str) -> str | None:
    """The peer of a reading, or None if Seachange is compared with itself or has no peer."""
    parts = reading.split(".")
    beginnings = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((PEERS[name] for name in beginnings if name in PEERS), None)
