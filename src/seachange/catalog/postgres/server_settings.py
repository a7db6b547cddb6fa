"""Settings of the PostgreSQL server that the catalog depends on.

The defaults of a server, a database or a role must not change the catalog's guarantees, nor make it slow. Each
connection sets these once. Behind a pooler a session's settings may get lost, so safety does not depend on them alone:
`seachange.lock_sequencer()` refuses another isolation level and makes the commit durable, and the functions that nodes
call have the planner's settings themselves (functions.sql).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """One setting; `since` is the first server version that has it."""

    name: str
    value: str
    since: int = 0


SERVER_SETTINGS = (
    # A function that takes the sequencer lock must see in its next statement what was committed before it.
    ServerSetting("default_transaction_isolation", "read committed"),
    ServerSetting("default_transaction_read_only", "off"),
    ServerSetting("default_transaction_deferrable", "off"),
    # Statement timeouts are those of the client's session, not of the catalog's server. Idle connections belong to a
    # pool.
    ServerSetting("statement_timeout", "0"),
    ServerSetting("lock_timeout", "0"),
    ServerSetting("idle_in_transaction_session_timeout", "0"),
    ServerSetting("idle_session_timeout", "0"),
    ServerSetting("transaction_timeout", "0", since=170_000),
    # Every statement is an index lookup. A planner that saw the tables when they were empty must not choose otherwise,
    # nor plan each statement again.
    ServerSetting("plan_cache_mode", "force_generic_plan"),
    ServerSetting("enable_seqscan", "off"),
    ServerSetting("enable_indexscan", "on"),
    ServerSetting("enable_indexonlyscan", "on"),
    ServerSetting("enable_bitmapscan", "on"),
    ServerSetting("enable_nestloop", "on"),
    # A scan without an index costs 10^10 with enable_seqscan off, which is enough to start the JIT compiler: 200 ms for
    # a statement of 1 ms. Parallel workers would be started for the same reason.
    ServerSetting("jit", "off"),
    ServerSetting("max_parallel_workers_per_gather", "0"),
    # Names in the catalog's statements are qualified; functions and operators are PostgreSQL's own.
    ServerSetting("search_path", "pg_catalog, pg_temp"),
    # A row that a policy hides would be missing without an error.
    ServerSetting("row_security", "off"),
    # The text format of values.
    ServerSetting("TimeZone", "UTC"),
    ServerSetting("DateStyle", "ISO, YMD"),
    ServerSetting("IntervalStyle", "postgres"),
    ServerSetting("bytea_output", "hex"),
    ServerSetting("standard_conforming_strings", "on"),
    ServerSetting("array_nulls", "on"),
    ServerSetting("transform_null_equals", "off"),
    ServerSetting("extra_float_digits", "1"),
    ServerSetting("client_min_messages", "warning"),
)

_DURABLE = (
    "set_config('synchronous_commit', CASE WHEN NOT %s THEN 'off' WHEN current_setting('synchronous_commit') = 'off' "
    "THEN 'on' ELSE current_setting('synchronous_commit') END, false)"
)


def settings_query(server_version: int, durable: bool) -> tuple[str, list[object]]:
    """One SELECT that sets them all for the session, and its parameters."""
    known = [setting for setting in SERVER_SETTINGS if setting.since <= server_version]
    parameters: list[object] = [durable]
    for setting in known:
        parameters += [setting.name, setting.value]
    return f"SELECT {', '.join([_DURABLE] + ['set_config(%s, %s, false)'] * len(known))}", parameters
