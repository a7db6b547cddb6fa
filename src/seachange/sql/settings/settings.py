"""The settings that there are: a table of ours, and one of PostgreSQL's that are what they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seachange import errors
from seachange.model.search_path import DEFAULT_PATH
from seachange.sql.settings.setting_checks import (
    any_text,
    check_as_of,
    check_boolean,
    check_concurrently,
    check_count,
    check_duration,
    check_encoding,
    check_expiry,
    check_isolation,
    check_master,
    check_memory,
    check_message_size,
    check_options,
    check_path,
    check_ratio,
    check_remote,
    check_rows,
    check_size,
    check_some,
    check_switch,
)
from seachange.values.timezone import UTC, check_zone


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    default: str
    check: Callable[[str], str]
    description: str
    # Belongs to the node, and is read when the database is opened.
    of_node: bool = False
    # Concerns others, or what runs on the machine: for superusers only.
    for_superusers: bool = False


READ_ONLY = "default_transaction_read_only"

SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("application_name", "", any_text, "The name that the client gives itself."),
        Setting("client_encoding", "UTF8", check_encoding, "The encoding of text: always UTF8."),
        Setting(
            "default_transaction_isolation",
            "read committed",
            check_isolation,
            "The isolation level of transactions that do not say.",
        ),
        Setting(
            READ_ONLY,
            "off",
            check_boolean,
            "Whether transactions that do not say write nothing.",
        ),
        Setting(
            "transaction_isolation",
            "read committed",
            check_isolation,
            "The isolation level of the current transaction.",
        ),
        Setting(
            "seachange.as_of",
            "",
            check_as_of,
            "Read as of a sequence number or a timestamp; empty for now.",
        ),
        Setting(
            "seachange.concurrently",
            "wait",
            check_concurrently,
            "Whether CREATE and DROP INDEX CONCURRENTLY wait for their job, or give its id at once: wait or async.",
        ),
        Setting(
            "seachange.layout",
            "",
            check_as_of,
            "Show tables in the shape that they had at a sequence number or a timestamp, with the rows of now; empty "
            "for the shape that they have.",
        ),
        Setting(
            "seachange.drain_timeout",
            "5s",
            check_duration,
            "How long a schema change waits for transactions that began before it.",
        ),
        Setting("lock_timeout", "0", check_duration, "How long a statement waits for a key; 0 for ever."),
        Setting(
            "authentication_timeout",
            "30s",
            check_expiry,
            "How long a client of the server may take to log in.",
            of_node=True,
        ),
        Setting(
            "seachange.cancel_grace",
            "10s",
            check_duration,
            "How long a statement may go on after a cancel or its timeout before the server ends its connection "
            "(57P01); 0 for ever.",
            of_node=True,
        ),
        Setting(
            "idle_in_transaction_session_timeout",
            "0",
            check_duration,
            "After what silence within a transaction the server ends a connection (25P03); 0 for never.",
        ),
        Setting(
            "idle_session_timeout",
            "0",
            check_duration,
            "After what silence outside of transactions the server ends a connection (57P05); 0 for never.",
        ),
        Setting(
            "max_connections",
            "200",
            check_some,
            "How many clients the server takes; one more gets 53300. --connections counts more.",
            of_node=True,
        ),
        Setting(
            "seachange.max_prepared_statements",
            "10000",
            check_some,
            "How many prepared statements, and how many portals, a connection may have; one more gets 53400.",
            of_node=True,
        ),
        Setting(
            "seachange.max_message_size",
            "256MB",
            check_message_size,
            "How large a message of a client may be; a larger one ends its connection (08P01).",
            of_node=True,
        ),
        Setting(
            "seachange.memory_limit",
            "0",
            check_size,
            "How much memory the queries of a node take before they spill; 0 for four fifths of the machine's.",
            of_node=True,
        ),
        Setting(
            "seachange.temp_space_limit",
            "0",
            check_size,
            "How much space the queries of a node may spill to; 0 for nine tenths of what is free.",
            of_node=True,
        ),
        Setting(
            "seachange.node_expiry",
            "10s",
            check_expiry,
            "After what silence a node is given up; of the database, not of a session.",
            of_node=True,
        ),
        Setting(
            "seachange.worker",
            "on",
            check_switch,
            "Whether programs that open the database go on with jobs that others left behind; off leaves these to "
            "seachange worker and serve.",
            of_node=True,
        ),
        Setting(
            "seachange.retention",
            "1 day",
            check_duration,
            "How long history, and what was dropped, is kept.",
            for_superusers=True,
        ),
        Setting(
            "seachange.process_growth_limit",
            "4GB",
            check_size,
            "By how much the process may grow during a statement; 0 for any.",
            for_superusers=True,
        ),
        Setting(
            "seachange.local_rows",
            "",
            check_rows,
            "Up to how many rows backfills and validations are done in-process, and more on Spark: 0 is always Spark, "
            "empty goes by the work.",
        ),
        Setting("seachange.pipeline_cores", "0", check_count, "How many cores a pipeline uses at a time; 0 for all."),
        Setting(
            "seachange.pipeline_backoff_ratio",
            "0",
            check_ratio,
            "The work of a job waits while statements take more than so many times as long as before it; 0 for never.",
        ),
        Setting(
            "seachange.pipeline_bytes_per_second",
            "0",
            check_size,
            "How many bytes of files the work of a job reads and writes in a second, about; 0 for any.",
        ),
        Setting(
            "seachange.pipeline_free_space",
            "128MB",
            check_size,
            "How much space the work of a job leaves free on the disk; with less it waits.",
            for_superusers=True,
        ),
        Setting(
            "seachange.pipeline_memory",
            "512MB",
            check_size,
            "How much memory a kernel of the pipeline takes before it spills.",
        ),
        Setting(
            "seachange.pipeline_unit_rows",
            "0",
            check_count,
            "About how many rows are read before the work on them is kept; 0 goes by the work.",
        ),
        Setting(
            "seachange.spark.master",
            "",
            check_master,
            "Where Spark runs; empty for this machine, local[*].",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.remote",
            "",
            check_remote,
            "A server of Spark Connect: sc://host:port.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.driver_memory", "1g", check_memory, "The memory of Spark's driver.", for_superusers=True
        ),
        Setting(
            "seachange.spark.executor_memory",
            "1g",
            check_memory,
            "The memory of each of Spark's executors.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.executor_cores",
            "",
            check_rows,
            "The cores of each executor; empty for all.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.cores_max",
            "",
            check_rows,
            "The cores of all executors; empty for all.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.python",
            "",
            any_text,
            "The Python of the executors, which has this version of Seachange; empty for the path of this one.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.idle_timeout",
            "10min",
            check_duration,
            "After what idle time Spark is stopped.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.options",
            "",
            check_options,
            "Other settings of Spark: name=value, separated by spaces.",
            for_superusers=True,
        ),
        Setting("role", "none", any_text, "The role on whose behalf statements run; none: that of the session."),
        Setting("session_authorization", "default", any_text, "The role of the session; default: that it began with."),
        Setting("search_path", DEFAULT_PATH, check_path, "The schemas in which names are looked for, in order."),
        Setting("statement_timeout", "0", check_duration, "How long a statement may take; 0 for ever."),
        Setting("timezone", UTC, check_zone, "The time zone of the session, by its name or in hours east."),
    )
}

PIPELINE_SETTINGS = tuple(
    name for name in SETTINGS if name.startswith(("seachange.local_rows", "seachange.pipeline_", "seachange.spark."))
)

# What clients of PostgreSQL ask for, and set to what it is: nothing here depends on it.
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
# Other ways to write what they are.
SPELLINGS = {"datestyle": ("iso, mdy", "iso", "iso,mdy", "mdy"), "standard_conforming_strings": ("on", "true", "1")}
# Of these, the ones that may be set to anything: they say how results are written for people, or how PostgreSQL works.
HEEDLESS = frozenset(
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
