"""Disks that are full or broken: a clear error that names the file, nothing acknowledged lost, and on it goes."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.runtime.faults import FAULTS, arm_from
from tests.crash.killing import EXPIRY_MS, SEED, judge_rest
from tests.crash.script import KINDS, make_script
from tests.crash.workload import run_step
from tests.support.judge import judge_garbage, judge_script
from tests.support.nodes import Place, open_ported_node
from tests.support.workers import Answer, Worker, Workers, wait_until

LOAD = KINDS.index("load")
COMPACT = KINDS.index("compact")
SMALL_BYTES = 8 << 20

ERRORS = {"enospc": errors.DiskFull, "eio": errors.InputOutputError}
IN_A_LOAD = ("bulk.sorted", "segment.written", "segment.synced", "segment.renamed", "segment.published")
IN_A_COMPACTION = ("segment.written", "segment.published")


@pytest.fixture
def node(place: Place) -> Iterator[Node]:
    node = open_ported_node(place)
    yield node
    FAULTS.disarm()
    node.close()


def run_steps(node: Node, first: int, last: int) -> None:
    for number in range(first, last):
        run_step(node, SEED, number)


def fail_step(node: Node, number: int, fault: str) -> errors.Error:
    arm_from(fault, FAULTS)
    with pytest.raises(ERRORS[fault.rpartition(":")[2]]) as caught:
        run_step(node, SEED, number)
    FAULTS.disarm()
    return caught.value


def test_a_write_that_fails_leaves_nothing_behind(node: Node):
    run_steps(node, 0, LOAD)
    for kind in ERRORS:
        for point in IN_A_LOAD:
            # In the first file, and in one of an index when others are there already.
            for occurrence in (1, 3):
                problem = fail_step(node, LOAD, f"{point}:{occurrence}:{kind}")
                assert ".parquet" in str(problem) or point == "bulk.sorted"
        assert not judge_script(node, SEED, LOAD)
    run_steps(node, LOAD, COMPACT)
    for kind in ERRORS:
        for point in IN_A_COMPACTION:
            fail_step(node, COMPACT, f"{point}:1:{kind}")
        assert not judge_script(node, SEED, COMPACT)
    assert not judge_rest(node, SEED, COMPACT, len(KINDS))


# A file system that is really full.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    # Lazily: a process that has just been killed may hold it for a moment.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, left_bytes: int = 0) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while shutil.disk_usage(disk).free > left_bytes:
                file.write(b"x" * 4096)
        except OSError:
            return filler
    return filler


def run(worker: Worker, first: int, last: int) -> tuple[int, Answer]:
    """Runs steps of the script; gives how many were acknowledged in all, and the last answer."""
    worker.send("run", seed=SEED, first=first, last=last)
    heard = worker.hear_until("done", "error")
    return first + sum("ack" in answer for answer in heard), heard[-1]


@pytest.mark.parametrize("stopped_at", ["insert", "load", "compact"])
def test_the_disk_is_full(stopped_at: str, place: Place, small_disk: Path, workers: Workers):
    place = Place(small_disk / "data", place.catalog)
    place.data.mkdir()
    number = KINDS.index(stopped_at)
    worker = workers.take()
    worker.open(place)
    acknowledged, heard = run(worker, 0, number)
    assert acknowledged == number, heard
    filler = fill(small_disk)
    # The catalog of PostgreSQL lies on another disk: rows that go inline are not hindered.
    acknowledged, heard = run(worker, number, len(KINDS))
    assert heard["error"] == "53100", heard
    assert acknowledged < len(KINDS)
    filler.unlink()
    acknowledged, heard = run(worker, acknowledged, len(KINDS))
    assert "done" in heard, heard
    worker.kill()
    node = open_ported_node(place)
    try:
        assert not judge_script(node, SEED, len(KINDS))
    finally:
        node.close()


# A disk whose fsync fails, by way of the kernel.


@pytest.fixture
def strace() -> str:
    found = shutil.which("strace")
    if found is None:
        pytest.skip("strace is not installed")
    return found


class BrokenFsync:
    """While it lasts, every fsync of a process fails."""

    def __init__(self, strace: str, pid: int, log: Path) -> None:
        command = [strace, "-f", "-p", str(pid), "-o", str(log), "-e", "trace=fsync,fdatasync"]
        command += ["-e", "inject=fsync,fdatasync:error=EIO"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE)
        self._pid = pid

    def __enter__(self) -> None:
        def attached() -> bool:
            if self._process.poll() is not None:
                assert self._process.stderr is not None
                pytest.skip(f"strace cannot attach here: {self._process.stderr.read().decode().strip()}")
            tasks = Path(f"/proc/{self._pid}/task").iterdir()
            return all("TracerPid:\t0" not in (task / "status").read_text() for task in tasks)

        wait_until(attached, "strace to attach")

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.communicate()


@pytest.mark.parametrize("kind", ["insert", "load"])
def test_fsync_fails(kind: str, place: Place, workers: Workers, strace: str, tmp_path: Path, catalog_kind: str):
    if (catalog_kind, kind) == ("postgresql", "insert"):
        pytest.skip("rows that go inline are made durable by the server")
    number = KINDS.index(kind)
    worker = workers.take()
    worker.open(place, expiry_ms=EXPIRY_MS)
    acknowledged, heard = run(worker, 0, number)
    assert acknowledged == number
    with BrokenFsync(strace, worker.pid, tmp_path / "strace"):
        acknowledged, heard = run(worker, number, number + 1)
    assert acknowledged == number
    assert heard["error"] in ("58030", "40003"), heard
    assert "EIO" in (tmp_path / "strace").read_text()
    worker.kill()
    # Not acknowledged: there whole, or not at all.
    node = open_ported_node(place)
    try:
        assert not judge_script(node, SEED, number)
        assert not judge_rest(node, SEED, number, len(KINDS))
    finally:
        node.close()


# Files that are no longer what was written.


def truncate(file: Path, other: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path, other: Path) -> None:
    os.truncate(file, 0)


def flip_a_bit(file: Path, other: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 4
    file.write_bytes(content)


def remove(file: Path, other: Path) -> None:
    file.unlink()


def swap(file: Path, other: Path) -> None:
    """Takes the other's content, cut or filled to the very same size."""
    size = file.stat().st_size
    file.write_bytes(other.read_bytes()[:size].ljust(size, b"\0"))


def exchange(file: Path, other: Path) -> None:
    mine, theirs = file.read_bytes(), other.read_bytes()
    file.write_bytes(theirs)
    other.write_bytes(mine)


@pytest.mark.parametrize("damage", [truncate, empty, flip_a_bit, remove, swap, exchange])
def test_a_damaged_segment_gives_no_rows(damage, place: Place):
    node = open_ported_node(place)
    run_steps(node, 0, LOAD + 1)
    txn = node.begin()
    table = txn.schema.table(None, "left")
    right = txn.schema.table(None, "right")
    of = {t.name: txn.reads.index_parts(t, t.primary).files[0].segment for t in (table, right)}
    files = {name: place.segments / node.parts.warehouse.name(segment.id) for name, segment in of.items()}
    key = make_script(SEED)[LOAD].keys[0]
    txn.rollback()
    node.close()
    damage(files["left"], files["right"])
    node = open_ported_node(place)
    try:
        txn = node.begin()
        with pytest.raises(errors.SegmentDamaged, match=files["left"].name):
            txn.reads.scan(table)
        with pytest.raises(errors.SegmentDamaged, match=files["left"].name):
            txn.reads.get(table, (key,))
        txn.rollback()
        assert any(files["left"].name in problem for problem in judge_script(node, SEED, LOAD + 1))
    finally:
        node.close()


def test_garbage_of_a_failed_write_is_collected(node: Node):
    run_steps(node, 0, LOAD)
    fail_step(node, LOAD, "segment.renamed:2:eio")
    assert not judge_garbage(node)
