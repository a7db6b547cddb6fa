"""What each topic is about, and who the peers of its readings are, as data."""

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
        "One change after the other",
        "A column is added, the one before it dropped, and so on, while a session works on the table as fast as it can:"
        " what it gets done, over what it gets done of a table that nobody changes. Rows stay in the layouts that they"
        " were written in. The session of Seachange is embedded in its process, that of PostgreSQL speaks to a server.",
    ),
    Topic(
        "foreground",
        "What a long change costs those who work",
        "One node's transactions while another node builds an index on the table, over the same transactions before.",
    ),
    Topic(
        "aborts",
        "Transactions that fail because the schema changed",
        "Of transactions that were open while somebody changed the table; and under load from several nodes.",
    ),
    Topic("changes", "Changes that move no bytes", "Of a large table over a small one, and while other nodes write."),
    Topic("builds", "Changes that move rows", "An index, two of them, another type; sessions and Spark are warm."),
    Topic("validations", "Changes that read rows", "The whole statement, on rows that are there already."),
    Topic(
        "growth",
        "How it grows",
        "With rows, columns, layouts and commits: the larger over the smaller. What a killed process costs.",
    ),
    Topic("commits", "Durable commits of one row", "One session, one row to a commit, on a fresh table."),
    Topic("processes", "Many writers", "Processes on one table, and sessions of one process, over one alone."),
    Topic("contention", "Hot rows", "Clients that write the same few rows: those of one node, and of one node each."),
    Topic("statements", "What SQL costs", "A prepared statement by key, over the same change without SQL."),
    Topic("points", "Point reads", "By primary key."),
    Topic("seeks", "Look-ups through an index", "Over scans for the same rows."),
    Topic("scans", "Scans of updated tables", "Aggregates over a table of which a few rows were updated."),
    Topic("tpch", "TPC-H", "The geometric mean of the times of all queries."),
    Topic("bulk", "Bulk loads", "Rows that come unsorted, into a table with a primary key."),
    Topic("constraints", "Constraints of many rows", "INSERT ... SELECT with constraints, over without."),
    Topic("server", "Over the protocol", "Seachange's server and PostgreSQL's, asked the same by the same client."),
    Topic("planner", "Planning", "A thousand of something over a hundred."),
)

DUCKDB = "DuckDB on Parquet"

# By the longest beginning of a reading's name; what is not here is compared with Seachange itself.
PEERS = {
    "commits.deltalake": "deltalake",
    "commits.pyiceberg": "pyiceberg",
    "commits.ducklake_duckdb": "DuckLake",
    "commits.ducklake_sqlite": "DuckLake, SQLite",
    "scans": DUCKDB,
    "points": DUCKDB,
    "bulk.load": DUCKDB,
    "tpch": DUCKDB,
    "validations.check": DUCKDB,
    "builds.index.duckdb": DUCKDB,
    "builds.index.spark_sql": "Spark SQL",
    "builds.index.postgresql": "PostgreSQL",
    "builds.conversion": "PostgreSQL",
    "changes.live.sqlite.ducklake": "DuckLake",
    "changes.live.postgresql.ducklake": "DuckLake",
    "server.constant": "PostgreSQL",
    "server.keyed": "PostgreSQL",
    "server.result": "PostgreSQL",
    "server.copy": "PostgreSQL",
    "evolution": "PostgreSQL",
}

SYSTEMS = {
    "seachange": "Seachange",
    "postgresql_plain": "PostgreSQL",
    "postgresql_careful": "PostgreSQL, carefully",
    "postgresql_batched": "PostgreSQL, in batches",
    "ducklake": "DuckLake",
    "deltalake": "deltalake",
}


def peer_of(reading: str) -> str | None:
    """The peer of a reading, or None where Seachange is compared with itself or with nobody."""
    parts = reading.split(".")
    beginnings = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((PEERS[name] for name in beginnings if name in PEERS), None)
