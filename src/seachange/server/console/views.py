"""What the console shows and does, as named SQL: each runs in a session of the role that is logged in, so that it sees
and may do what it sees and may do in SQL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConsoleQuery:
    """`parameters` are the names of its values in a request, in their order; `numbers` are those that are integers."""

    sql: str
    parameters: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()


# The application_name of the console's own sessions, which it does not show.
APPLICATION = "seachange console"

VIEWS: dict[str, ConsoleQuery] = {
    "jobs": ConsoleQuery(
        "SELECT id, statement, status, phase, stage, progress, rows_done, rows_total, rows_per_second, eta, "
        "waiting_for, error, hint, can_be_canceled, request, node, session, created, written_bytes, hidden_entries "
        "FROM seachange.jobs ORDER BY id DESC LIMIT 100"
    ),
    "running_stages": ConsoleQuery(
        "SELECT job_id, stage, began, duration_ms FROM seachange.job_stages ORDER BY began DESC LIMIT 50"
    ),
    "changes": ConsoleQuery("SELECT * FROM seachange.changes ORDER BY id DESC LIMIT 100"),
    "tables": ConsoleQuery(
        "SELECT d.table_schema, d.table_name, d.version, count(*) FILTER (WHERE d.element = 'column') AS columns, "
        "count(*) FILTER (WHERE d.element = 'index') AS indexes, "
        "count(*) FILTER (WHERE d.state <> 'PUBLIC') AS changing "
        "FROM seachange.descriptors d GROUP BY 1, 2, 3 ORDER BY 1, 2 LIMIT 1000"
    ),
    "columns": ConsoleQuery(
        "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns "
        "WHERE table_schema = $1 AND table_name = $2 ORDER BY ordinal_position",
        ("schema", "table"),
    ),
    "elements": ConsoleQuery(
        "SELECT element, name, state FROM seachange.descriptors "
        "WHERE table_schema = $1 AND table_name = $2 AND element <> 'table' ORDER BY 1, 2",
        ("schema", "table"),
    ),
    "layouts": ConsoleQuery(
        "SELECT layout_id, is_current, columns, segments, rows FROM seachange.layouts "
        "WHERE table_schema = $1 AND table_name = $2 ORDER BY 1 DESC",
        ("schema", "table"),
    ),
    "parts": ConsoleQuery(
        "SELECT index_name, count(*) AS segments, sum(rows) AS rows, sum(size_bytes) AS size_bytes "
        "FROM seachange.segments WHERE table_schema = $1 AND table_name = $2 GROUP BY 1 ORDER BY 1",
        ("schema", "table"),
    ),
    "nodes": ConsoleQuery("SELECT * FROM seachange.nodes ORDER BY live DESC, epoch DESC LIMIT 100"),
    "sessions": ConsoleQuery(
        "SELECT node, pid, role, database, application, client_address, state, waits_for, blocked_by, statement, "
        "transaction_began, state_changed FROM seachange.sessions "
        "WHERE application IS DISTINCT FROM 'seachange console' ORDER BY state = 'idle', state_changed LIMIT 500"
    ),
    "statements": ConsoleQuery(
        "SELECT statement, role, node, calls, failures, total_ms, mean_ms, longest_ms, rows FROM seachange.statements "
        "ORDER BY total_ms DESC LIMIT 30"
    ),
    "waits": ConsoleQuery("SELECT node, session, mode, waits_for, blocked_by FROM seachange.waits LIMIT 500"),
    "leases": ConsoleQuery(
        "SELECT node, session, table_schema, table_name, version, newest_version, is_changing, job_id, since "
        "FROM seachange.leases ORDER BY is_changing DESC, table_schema, table_name LIMIT 500"
    ),
    "events": ConsoleQuery("SELECT moment, job_id, event FROM seachange.events ORDER BY moment DESC LIMIT 200"),
}

_ID = frozenset({"id"})

ACTIONS: dict[str, ConsoleQuery] = {
    "pause_job": ConsoleQuery("SELECT seachange.pause_job($1)", ("id",), _ID),
    "resume_job": ConsoleQuery("SELECT seachange.resume_job($1)", ("id",), _ID),
    "cancel_job": ConsoleQuery("SELECT seachange.cancel_job($1)", ("id",), _ID),
    "publish_job": ConsoleQuery("SELECT seachange.publish_job($1)", ("id",), _ID),
    "cancel_statement": ConsoleQuery("SELECT pg_cancel_backend($1)", ("id",), _ID),
    "end_session": ConsoleQuery("SELECT pg_terminate_backend($1)", ("id",), _ID),
}

# How a change is explained before it is run, by what the answer calls it.
EXPLANATIONS: dict[str, str] = {"cost": "EXPLAIN (DDL, COST)", "plan": "EXPLAIN (DDL)"}
