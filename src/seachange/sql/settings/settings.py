"""Session and node settings: a table of ours, and one of PostgreSQL's that have a fixed value here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seachange import errors
from seachange.model.search_path import DEFAULT_PATH
from seachange.sql.settings import setting_checks as checks
from seachange.values.timezone import UTC, check_zone


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    default: str
    check: Callable[[str], str]
    description: str
    # A setting of the node: read when the database is opened, not changed by SET.
    of_node: bool = False
    # Affects other sessions or the machine: only superusers may set it.
    for_superusers: bool = False


READ_ONLY = "default_transaction_read_only"

SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("application_name", "", checks.any_text, "The application's name, as the client reports it."),
        Setting("client_encoding", "UTF8", checks.check_encoding, "The encoding of text: always UTF8."),
        Setting(
            "default_transaction_isolation",
            "read committed",
            checks.check_isolation,
            "The isolation level of new transactions.",
        ),
        Setting(
            READ_ONLY,
            "off",
            checks.check_boolean,
            "Whether new transactions are read-only.",
        ),
        Setting(
            "transaction_isolation",
            "read committed",
            checks.check_isolation,
            "The isolation level of the current transaction.",
        ),
        Setting(
            "seachange.as_of",
            "",
            checks.check_as_of,
            "Read as of a sequence number or a timestamp; empty reads the current data.",
        ),
        Setting(
            "seachange.concurrently",
            "wait",
            checks.check_concurrently,
            "Whether CREATE and DROP INDEX CONCURRENTLY wait for their job (wait) or return its id at once (async).",
        ),
        Setting(
            "seachange.layout",
            "",
            checks.check_as_of,
            "Show tables with their definitions as of a sequence number or a timestamp, and their current rows; empty "
            "for the current definitions.",
        ),
        Setting(
            "seachange.drain_timeout",
            "5s",
            checks.check_duration,
            "How long a schema change waits for transactions that have used an older version of the table.",
        ),
        Setting("lock_timeout", "0", checks.check_duration, "How long a statement waits for a lock; 0 waits forever."),
        Setting(
            "authentication_timeout",
            "30s",
            checks.check_expiry,
            "Maximum time for a client to complete authentication.",
            of_node=True,
        ),
        Setting(
            "seachange.cancel_grace",
            "10s",
            checks.check_duration,
            "How long a statement may continue after a cancel or its timeout before the server closes the connection "
            "(57P01); 0 disables this.",
            of_node=True,
        ),
        Setting(
            "idle_in_transaction_session_timeout",
            "0",
            checks.check_duration,
            "Idle time within a transaction after which the server closes the connection (25P03); 0 disables it.",
        ),
        Setting(
            "idle_session_timeout",
            "0",
            checks.check_duration,
            "Idle time outside of a transaction after which the server closes the connection (57P05); 0 disables it.",
        ),
        Setting(
            "max_connections",
            "200",
            checks.check_some,
            "Maximum number of client connections; further ones get 53300. serve --connections overrides it.",
            of_node=True,
        ),
        Setting(
            "seachange.max_prepared_statements",
            "10000",
            checks.check_some,
            "Maximum number of prepared statements, and of portals, of a connection; further ones get 53400.",
            of_node=True,
        ),
        Setting(
            "seachange.max_message_size",
            "256MB",
            checks.check_message_size,
            "Maximum size of a client's message; a larger one closes the connection (08P01).",
            of_node=True,
        ),
        Setting(
            "seachange.memory_limit",
            "0",
            checks.check_size,
            "Memory that the queries of a node use before they spill to disk; 0 is 80 % of the machine's memory.",
            of_node=True,
        ),
        Setting(
            "seachange.temp_space_limit",
            "0",
            checks.check_size,
            "Disk space that the queries of a node may spill to; 0 is 90 % of the free space.",
            of_node=True,
        ),
        Setting(
            "seachange.node_expiry",
            "10s",
            checks.check_expiry,
            "Heartbeat timeout after which a node is declared dead (database-wide).",
            of_node=True,
        ),
        Setting(
            "seachange.worker",
            "on",
            checks.check_switch,
            "Whether every program that opens the database resumes jobs whose node has died; off leaves them to "
            "seachange worker and serve.",
            of_node=True,
        ),
        Setting(
            "seachange.retention",
            "1 day",
            checks.check_duration,
            "How long old row versions and dropped objects are kept.",
            for_superusers=True,
        ),
        Setting(
            "seachange.process_growth_limit",
            "4GB",
            checks.check_size,
            "How much the process's memory may grow during a statement; 0 is unlimited.",
            for_superusers=True,
        ),
        Setting(
            "seachange.local_rows",
            "",
            checks.check_rows,
            "Backfills and validations of up to this many rows run in-process, larger ones on Spark: 0 is always "
            "Spark, empty decides by the amount of work.",
        ),
        Setting("seachange.pipeline_cores", "0", checks.check_count, "Number of cores that a pipeline uses; 0 is all."),
        Setting(
            "seachange.pipeline_backoff_ratio",
            "0",
            checks.check_ratio,
            "Jobs pause while statements take more than this many times as long as before the job; 0 disables it.",
        ),
        Setting(
            "seachange.pipeline_bytes_per_second",
            "0",
            checks.check_size,
            "Approximate limit on the bytes that a job reads and writes per second; 0 is unlimited.",
        ),
        Setting(
            "seachange.pipeline_free_space",
            "128MB",
            checks.check_size,
            "Disk space that jobs leave free; with less, they pause.",
            for_superusers=True,
        ),
        Setting(
            "seachange.pipeline_memory",
            "512MB",
            checks.check_size,
            "Memory that a pipeline kernel uses before it spills to disk.",
        ),
        Setting(
            "seachange.pipeline_unit_rows",
            "0",
            checks.check_count,
            "Approximate number of rows in a work unit, after which progress is saved; 0 decides by the amount of "
            "work.",
        ),
        Setting(
            "seachange.spark.master",
            "",
            checks.check_master,
            "The Spark master; empty is this machine, local[*].",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.remote",
            "",
            checks.check_remote,
            "The address of a Spark Connect server: sc://host:port.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.driver_memory",
            "1g",
            checks.check_memory,
            "Memory of the Spark driver.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.executor_memory",
            "1g",
            checks.check_memory,
            "Memory of each Spark executor.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.executor_cores",
            "",
            checks.check_rows,
            "Cores of each Spark executor; empty is all.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.cores_max",
            "",
            checks.check_rows,
            "Cores of all Spark executors together; empty is all.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.python",
            "",
            checks.any_text,
            "Python interpreter of the Spark executors, with this version of Seachange installed; empty is the path of "
            "this program's own.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.idle_timeout",
            "10min",
            checks.check_duration,
            "Idle time after which Spark is stopped.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.options",
            "",
            checks.check_options,
            "Further Spark settings: name=value, separated by spaces.",
            for_superusers=True,
        ),
        Setting("role", "none", checks.any_text, "The current role (SET ROLE); none is the session's role."),
        Setting(
            "session_authorization",
            "default",
            checks.any_text,
            "The session's role; default is the role that logged in.",
        ),
        Setting(
            "search_path",
            DEFAULT_PATH,
            checks.check_path,
            "The schemas that are searched for unqualified names, in order.",
        ),
        Setting("statement_timeout", "0", checks.check_duration, "Maximum duration of a statement; 0 is unlimited."),
        Setting(
            "timezone", UTC, check_zone, "The time zone of the session: a name, or an offset in hours east of UTC."
        ),
    )
}

PIPELINE_SETTINGS = tuple(
    name for name in SETTINGS if name.startswith(("seachange.local_rows", "seachange.pipeline_", "seachange.spark."))
)

# Settings of PostgreSQL that clients read, and set to the value that they have. Nothing here depends on them.
FIXED: dict[str, str] = {
    "block_size": "8192",
    "bytea_output": "hex",
    "check_function_bodies": "on",
    "client_min_messages": "notice",
    "constraint_exclusion": "partition",
    "data_checksums": "on",
    "datestyle": "ISO, MDY",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "default_transaction_deferrable": "off",
    "effective_cache_size": "4GB",
    "enable_hashjoin": "on",
    "enable_indexscan": "on",
    "enable_mergejoin": "on",
    "enable_nestloop": "on",
    "enable_seqscan": "on",
    "extra_float_digits": "1",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "on",
    "jit": "off",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "maintenance_work_mem": "64MB",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "max_parallel_workers_per_gather": "2",
    "plan_cache_mode": "auto",
    "quote_all_identifiers": "off",
    "random_page_cost": "4",
    "row_security": "on",
    "server_encoding": "UTF8",
    "server_version": "15.0",
    "server_version_num": "150000",
    "standard_conforming_strings": "on",
    "synchronize_seqscans": "on",
    "synchronous_commit": "on",
    "temp_buffers": "8MB",
    "wal_level": "replica",
    "work_mem": "4MB",
    "xmloption": "content",
}
# Other spellings of these values.
SPELLINGS = {"datestyle": ("iso, mdy", "iso", "iso,mdy", "mdy"), "standard_conforming_strings": ("on", "true", "1")}
# Those of them that may be set to any value, which is ignored: they concern PostgreSQL's planner or its display.
IGNORED_SETTINGS = frozenset(
    {
        "check_function_bodies",
        "client_min_messages",
        "effective_cache_size",
        "enable_hashjoin",
        "enable_indexscan",
        "enable_mergejoin",
        "enable_nestloop",
        "enable_seqscan",
        "extra_float_digits",
        "jit",
        "maintenance_work_mem",
        "max_parallel_workers_per_gather",
        "plan_cache_mode",
        "random_page_cost",
        "row_security",
        "synchronize_seqscans",
        "synchronous_commit",
        "temp_buffers",
        "work_mem",
        "xmloption",
    }
)


def is_of_node(name: str) -> bool:
    return name not in FIXED and find_setting(name).of_node


def is_free(name: str) -> bool:
    """Whether any role may set it."""
    return name in FIXED or not find_setting(name).for_superusers


def check_privilege(name: str, superuser: bool) -> None:
    if not superuser and not is_free(name):
        raise errors.InsufficientPrivilege(detail=f'permission denied to set parameter "{name}"')


def find_setting(name: str) -> Setting:
    setting = SETTINGS.get(name)
    if setting is None:
        raise errors.UndefinedObject(kind="configuration parameter", name=name)
    return setting
