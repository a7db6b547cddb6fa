"""The required bounds as data: one line per reading."""

from bench.harness import Bound, Relation

AT_LEAST = Relation.AT_LEAST
AT_MOST = Relation.AT_MOST

BOUNDS = (
    # Durable single-row INSERT commits per second, one embedded session, the
    # first commits of a fresh table. Both catalogs of DuckLake have to be
    # beaten, so the faster one decides.
    Bound("commits.deltalake", AT_LEAST, 10),
    Bound("commits.pyiceberg", AT_LEAST, 50),
    Bound("commits.ducklake_duckdb", AT_LEAST, 5),
    Bound("commits.ducklake_sqlite", AT_LEAST, 5),
    # Time of a commit after many others, over that of the first hundred.
    Bound("commits.later", AT_MOST, 1.5),
    # Many processes on one table, over one process.
    Bound("processes.postgresql.throughput", AT_LEAST, 0.6),
    Bound("processes.postgresql.slowest_to_mean", AT_LEAST, 0.3),
    Bound("processes.postgresql.p99_to_p50", AT_MOST, 20),
    Bound("processes.sqlite.slowest_to_mean", AT_LEAST, 0.3),
    Bound("processes.sqlite.p99_to_p50", AT_MOST, 20),
    # Many sessions of one node, over one session.
    Bound("processes.sessions.throughput", AT_LEAST, 2),
    Bound("processes.sessions.catalog_transactions_per_commit", AT_MOST, 1 / 8),
    # Conflicts that clients see on hot rows, those of one node and those of four; and transactions per second of four.
    Bound("contention.autocommit.conflicts", AT_MOST, 0),
    Bound("contention.blocks.conflicts", AT_MOST, 0),
    Bound("contention.processes.conflicts", AT_MOST, 0),
    Bound("contention.processes.transactions", AT_LEAST, 150),
    # Time of an aggregate over a table with a few updated rows, over DuckDB on
    # plain Parquet. A text key may cost nothing extra.
    Bound("scans.clustered.one_column", AT_MOST, 1.2),
    Bound("scans.clustered.three_columns", AT_MOST, 1.2),
    Bound("scans.uniform.one_column", AT_MOST, 1.7),
    Bound("scans.uniform.three_columns", AT_MOST, 1.4),
    Bound("scans.text_key.one_column", AT_MOST, 1.7),
    Bound("scans.text_key.three_columns", AT_MOST, 1.4),
    # Point SELECTs per second by primary key, over DuckDB on unsorted Parquet;
    # from the image, as such.
    Bound("points.stored", AT_LEAST, 12),
    Bound("points.image", AT_LEAST, 5_000),
    # Look-ups per second through a secondary index, over scans for the same rows.
    Bound("seeks.stored", AT_LEAST, 50),
    # Time of a bulk load with a primary key, over DuckDB writing the rows
    # sorted; and its peak memory, over that of a load of a quarter of the rows.
    Bound("bulk.load", AT_MOST, 2),
    Bound("bulk.memory", AT_MOST, 1.25),
    # Time of an INSERT ... SELECT with a unique and a foreign key, over that
    # without.
    Bound("constraints.insert_select", AT_MOST, 2.5),
    # Time of a prepared statement that changes one row by its key, over the
    # same change without SQL.
    Bound("statements.insert", AT_MOST, 3),
    Bound("statements.update", AT_MOST, 3),
    Bound("statements.delete", AT_MOST, 3),
    # Over the protocol, beside PostgreSQL: rates of short prepared statements,
    # time of a large result, rate of COPY; how much later than the median the
    # slowest hundredth is answered; and what idle connections cost the others.
    Bound("server.constant", AT_LEAST, 0.05),
    Bound("server.keyed.select.p99_to_p50", AT_MOST, 10),
    Bound("server.keyed.update.p99_to_p50", AT_MOST, 10),
    Bound("server.result", AT_MOST, 3),
    Bound("server.copy", AT_LEAST, 0.5),
    Bound("server.idle.statement", AT_MOST, 1.2),
    # pgbench, beside PostgreSQL: time of its load, transactions per second, and
    # the server's CPU time for a transaction, in milliseconds.
    Bound("pgbench.load", AT_MOST, 2),
    Bound("pgbench.read.one", AT_LEAST, 0.4),
    Bound("pgbench.read.one.cpu", AT_MOST, 0.12),
    Bound("pgbench.read.eight", AT_LEAST, 0.15),
    Bound("pgbench.write.one", AT_LEAST, 0.4),
    Bound("pgbench.write.one.cpu", AT_MOST, 1.1),
    Bound("pgbench.write.eight", AT_LEAST, 0.18),
    Bound("pgbench.tpcb.eight", AT_LEAST, 0.15),
    Bound("pgbench.simple.one", AT_LEAST, 0.4),
    # Time to plan a thousand of something, over a hundred; and to plan a table
    # with a thousand columns, in seconds.
    Bound("planner.columns", AT_MOST, 12),
    Bound("planner.table", AT_MOST, 12),
    Bound("planner.indexes", AT_MOST, 12),
    Bound("planner.checks", AT_MOST, 12),
    Bound("planner.unique_columns", AT_MOST, 12),
    Bound("planner.wide_table", AT_MOST, 1),
    # Time of a change that moves no bytes: of a large table over a small one;
    # and while other nodes write, over one commit among them and over
    # DuckLake's ADD COLUMN without concurrent sessions.
    Bound("changes.size", AT_MOST, 1.2),
    Bound("changes.live.sqlite.commit", AT_MOST, 10),
    Bound("changes.live.sqlite.ducklake", AT_MOST, 1),
    Bound("changes.live.postgresql.commit", AT_MOST, 10),
    Bound("changes.live.postgresql.ducklake", AT_MOST, 1),
    # Schema changes in transaction blocks: BEGIN, ADD COLUMN, COMMIT over
    # PostgreSQL's; ten columns over one; an index over the same in autocommit;
    # ROLLBACK after it and COMMIT under load, in milliseconds; COMMIT after an
    # UPDATE of all rows, in seconds.
    Bound("blocks.columns.one", AT_MOST, 3),
    Bound("blocks.columns.ten", AT_MOST, 5),
    Bound("blocks.index.build", AT_MOST, 1.15),
    Bound("blocks.index.rollback", AT_MOST, 20),
    Bound("blocks.commit.rows", AT_MOST, 50),
    Bound("blocks.bulk.commit", AT_MOST, 0.5),
    # A foreground while an index on a large table is built, over before: what
    # it gets done and its 99th percentile when half its capacity is asked of
    # it, and what it gets done when all of it is.
    Bound("foreground.open.throughput", AT_LEAST, 0.97),
    Bound("foreground.open.p99", AT_MOST, 2),
    Bound("foreground.closed.throughput", AT_LEAST, 0.5),
    # Transactions that fail because the schema changed under them.
    Bound("aborts.load", AT_MOST, 0),
    Bound("aborts.spanning.seachange", AT_MOST, 0),
    # Time of an index on a text column, built by Spark's tasks, over others that
    # make the same of the same rows; of a type change by an expression; and of
    # two indexes by one statement, over two statements.
    Bound("builds.index.spark_sql", AT_MOST, 1 / 2.5),
    Bound("builds.index.postgresql", AT_MOST, 1 / 1.3),
    Bound("builds.index.duckdb", AT_MOST, 2.5),
    Bound("builds.conversion", AT_MOST, 1),
    Bound("builds.two_indexes", AT_MOST, 0.9),
    # Time of ADD CHECK, over DuckDB on plain Parquet, on Spark after its first
    # second; and that a key is unique, over the build of its index.
    Bound("validations.check.in_process", AT_MOST, 1.5),
    Bound("validations.check.spark", AT_MOST, 1.5),
    Bound("validations.unique", AT_MOST, 0.35),
    # A build of many rows over one of few: time of a row, and memory. What two
    # nodes work on a build when the first is killed, over one undisturbed.
    Bound("growth.size.time", AT_MOST, 1.25),
    Bound("growth.size.driver_memory", AT_MOST, 1.25),
    Bound("growth.size.kernel_memory", AT_MOST, 1.25),
    Bound("growth.resume", AT_MOST, 1.15),
    # How many times too much or too little EXPLAIN (DDL, COST) expects at
    # worst, of all statements of the catalogue.
    *(
        Bound(f"estimates.{data}.{what}", AT_MOST, 2)
        for data in ("random", "sequential", "few")
        for what in ("rows", "bytes")
    ),
    # Time of a TPC-H query, over DuckDB on plain Parquet: the geometric mean
    # of all of them, after some rows were updated and once they are folded.
    Bound("tpch.updated", AT_MOST, 1.7),
    Bound("tpch.compacted", AT_MOST, 1.3),
    # A database in an object store: the same queries from the cache, over one
    # in a folder; from an empty cache, over DuckDB with httpfs on the same
    # files; the requests for one row of a large file; and a bulk load, over one
    # into a folder.
    Bound("lake.warm", AT_MOST, 1.1),
    Bound("lake.cold", AT_MOST, 1),
    Bound("lake.point", AT_MOST, 3),
    Bound("lake.load", AT_MOST, 1.5),
)


def bounds_of(measure: str) -> tuple[Bound, ...]:
    return tuple(bound for bound in BOUNDS if bound.reading == measure or bound.reading.startswith(f"{measure}."))
