"""Files that a node keeps open: those that its newest snapshots show, and no others."""

import os
from pathlib import Path

from seachange.engine.node.node import Node
from seachange.engine.session.session import Session

CYCLES = 6


def open_segments(folder: Path) -> set[str]:
    links = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
    found = {os.readlink(link) for link in links if os.path.lexists(link)}
    return {path for path in found if path.startswith(str(folder)) and path.endswith(".parquet")}


def look_up(session: Session) -> None:
    """By key, in files."""
    for key in (1, 700, 1400):
        session.execute(f"update t set n = n + 1 where id = {key}")


def tidy(node: Node) -> None:
    node.epoch.catch_up()
    node.epoch.housekeeping(node.epoch.registry.mark())


def test_files_of_replaced_generations_and_dropped_tables_are_closed(node: Node, other: Node, tmp_path: Path):
    """Retention keeps the files; both nodes close them, whichever of them has compacted."""
    sessions = Session(node), Session(other)
    sessions[0].execute("create table t (id int primary key, n int)")
    sessions[0].execute("insert into t select g, g from generate_series(1, 1500) g")
    most = 0
    for _ in range(CYCLES):
        sessions[0].execute("vacuum t")
        for session in sessions:
            look_up(session)
        for each in (node, other):
            tidy(each)
        most = max(most, len(open_segments(tmp_path)))
    assert 0 < most <= 2
    assert len(list(tmp_path.rglob("*.parquet"))) >= CYCLES
    sessions[0].execute("drop table t")
    for each in (node, other):
        tidy(each)
        assert each.epoch.images.loaded() == ()
    assert not open_segments(tmp_path)


def test_an_older_snapshot_reads_what_was_replaced(node: Node, tmp_path: Path):
    old, session = Session(node), Session(node)
    session.execute("create table t (id int primary key, n int)")
    session.execute("insert into t select g, g from generate_series(1, 1500) g")
    session.execute("vacuum t")
    old.execute("begin isolation level repeatable read; select count(*) from t")
    look_up(session)
    session.execute("vacuum t")
    tidy(node)
    assert old.execute("select n from t where id = 700").rows == [(700,)]
    old.execute("commit")
    tidy(node)
    assert session.execute("select n from t where id = 700").rows == [(701,)]
