"""Opening a database: one node per process, location and catalog, shared by all sessions of the process."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Collection
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from seachange import errors
from seachange.changer.job import Job
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.context.retention import Retention
from seachange.engine.context.settings_file import read_settings
from seachange.engine.database.database_identity import open_database
from seachange.engine.node.node import Node
from seachange.engine.replica.node_parts import TEMPORARY, NodeParts
from seachange.engine.replica.temporary_relations import drop_text, temporary_relations
from seachange.engine.session.session import Session
from seachange.model.jobs import JobId
from seachange.model.schema.temporary import epoch_of
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.location import CACHE, DataLocation, as_location
from seachange.runtime.opening import CacheOptions, ignores_conditions, open_files, open_identity
from seachange.runtime.permissions import create_data_folder
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.setting_checks import parse_duration_ms, parse_size
from seachange.storage.duck import Duck
from seachange.storage.warehouse import Warehouse


def check_database_exists(location: DataLocation) -> None:
    """For commands that make no sense on a new database."""
    if location.store is None:
        exists = Path(location.segments).is_dir()
    else:
        exists = open_identity(location.segments).read() is not None
    if not exists:
        raise errors.DataFolderProblem(path=location, detail="it does not contain a database")


def open_node(
    data: Path | DataLocation,
    catalog: str | None = None,
    name: str | None = None,
    expiry_ms: int | None = None,
    retention_us: int | None = None,
    creates: bool = True,
) -> Node:
    """Opens a node of its own over the database in a folder or object store, which is created if there is none and
    `creates` is True. Options that are None come from the `seachange.toml` of the local folder."""
    location = as_location(data)
    local = location.local
    settings = SessionSettings(read_settings(local))
    if expiry_ms is None:
        expiry_ms = parse_duration_ms(settings.get("seachange.node_expiry"))
    if retention_us is None:
        retention_us = 1_000 * parse_duration_ms(settings.get("seachange.retention"))
    try:
        opened, identity = open_database(catalog, location, creates)
        if location.store is not None:
            create_data_folder(local)
        cache = cache_options(location, settings)
        files = open_files(location.segments, cache)
    except OSError as problem:
        raise errors.DataFolderProblem(path=local, detail=problem.strerror or str(problem)) from problem
    parts = NodeParts(
        data=local,
        catalog=opened,
        files=files,
        warehouse=Warehouse(files),
        duck=Duck(
            local / TEMPORARY,
            parse_size(settings.get("seachange.memory_limit")),
            parse_size(settings.get("seachange.temp_space_limit")),
        ),
        clock=SYSTEM_CLOCK,
        entropy=SYSTEM_ENTROPY,
        identity=identity,
        settings=settings.defaults,
        retention=Retention(retention_us),
        cache=cache,
    )
    if location.store is not None and ignores_conditions(location.segments, identity):
        opened.log_event(f"the object store {location.store} ignores the conditions of PUT: it may replace objects")
    node = Node(parts, name or f"{socket.gethostname()}-{os.getpid()}", expiry_ms, threads=False)
    node.jobs.begin = partial(begin_queued, node)
    node.jobs.takes_up = settings.get("seachange.worker") == "on"
    node.start()
    drop_left(node)
    return node


def cache_options(location: DataLocation, settings: SessionSettings) -> CacheOptions:
    folder = settings.get("seachange.cache_folder") or str(location.local / CACHE)
    return CacheOptions(folder, parse_size(settings.get("seachange.cache_size")))


@dataclass(slots=True)
class _Shared:
    node: Node
    users: int


# The process id is part of the key: a forked child must not use its parent's connections.
_shared: dict[tuple[int, DataLocation, str | None], _Shared] = {}
_lock = threading.Lock()


def acquire_node(data: Path | DataLocation, catalog: str | None = None, creates: bool = True) -> Node:
    """The process' node over this database, opened by its first user."""
    key = (os.getpid(), as_location(data), catalog)
    with _lock:
        shared = _shared.get(key)
        if shared is None:
            shared = _shared[key] = _Shared(open_node(data, catalog, creates=creates), 0)
        shared.users += 1
        return shared.node


def release_node(node: Node) -> None:
    """Releases one use of a shared node; the last release closes it."""
    with _lock:
        for key, shared in _shared.items():
            if shared.node is node:
                shared.users -= 1
                if not shared.users:
                    del _shared[key]
                    node.close()
                return


def drop_left(node: Node) -> None:
    """Drops temporary tables and views of sessions that ended without dropping them, because their process was killed.
    Called by each node that opens the database. One that cannot be dropped now is left to the next node."""
    found = temporary_relations(node.epoch.schemas.newest)
    if not found:
        return
    live = {other.epoch for other in node.parts.catalog.nodes() if other.live}
    left = [relation for relation in found if epoch_of(relation.schema) not in live]
    for database in {relation.database for relation in left}:
        with suppress(errors.Error), closing(Session(node, database=database)) as session:
            session.execute("set lock_timeout = '100ms'")
            for relation in left:
                if relation.database == database:
                    session.execute(drop_text(relation.schema, relation))


def begin_queued(node: Node, job: Job, interrupts: SessionInterrupts) -> Collection[JobId]:
    """Plans and begins the statement of a queued job, as the user who sent it; returns the jobs that block it. It may
    have to wait for transactions that hold locks on what it changes; an interrupt ends that wait."""
    assert job.queued is not None
    session = Session(node, job.queued.user, job.queued.database)
    try:
        for name, value in job.queued.settings:
            session.settings.set(name, value)
        with interrupts.reaching(session):
            in_the_way = session.begin_queued(job)
        for notice in session.notices:
            node.parts.catalog.log_event(notice, job.id)
        return in_the_way
    finally:
        session.close()
