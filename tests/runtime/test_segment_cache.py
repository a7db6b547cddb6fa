"""The cache of segment files that the processes of a machine share."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seachange.runtime.segment_cache import SegmentCache
from tests.support.patience import PATIENCE_S

SIZE = 1_000


def store(cache: SegmentCache, name: str, size: int = SIZE) -> None:
    cache.temporary_path(name).write_bytes(name[-1].encode() * size)
    cache.adopt(name)


def age(cache: SegmentCache, name: str, seconds: int) -> None:
    path = cache.folder / "files" / name
    os.utime(path, (path.stat().st_atime - seconds, path.stat().st_mtime))


def names(cache: SegmentCache) -> set[str]:
    return set(os.listdir(cache.folder / "files"))


def test_file_of_one_process_is_found_by_another(tmp_path: Path):
    one, other = SegmentCache(tmp_path, SIZE), SegmentCache(tmp_path, SIZE)
    assert not other.pin("a")
    store(one, "a")
    assert other.pin("a")
    assert other.path("a").read_bytes() == b"a" * SIZE


def test_least_recently_used_file_is_evicted_first(tmp_path: Path):
    cache = SegmentCache(tmp_path, 2 * SIZE)
    for place, name in enumerate(("a", "b", "c")):
        store(cache, name)
        cache.unpin(name)
        age(cache, name, 100 - place)
    # Its use is noted although its pin is removed again.
    assert cache.pin("a")
    cache.unpin("a")
    assert cache.evict() == 1
    assert names(cache) == {"a", "c"}
    assert cache.evict() == 0


def test_pinned_file_is_not_evicted(tmp_path: Path):
    cache, other = SegmentCache(tmp_path, 0), SegmentCache(tmp_path, 0)
    store(cache, "a")
    store(cache, "b")
    cache.unpin("b")
    assert other.evict() == 1
    assert names(cache) == {"a"}
    assert (cache.contents().files, cache.contents().pinned) == (1, 1)
    # A file that is withdrawn under its reader stays readable.
    other.withdraw("a")
    assert cache.path("a").read_bytes() == b"a" * SIZE


def test_replaced_file_does_not_disturb_the_pin_of_another_process(tmp_path: Path):
    cache, other = SegmentCache(tmp_path, SIZE), SegmentCache(tmp_path, SIZE)
    store(cache, "a")
    assert other.pin("a")
    cache.withdraw("a")
    cache.temporary_path("a").write_bytes(b"new")
    cache.adopt("a")
    assert other.path("a").read_bytes() == b"a" * SIZE
    assert (tmp_path / "files" / "a").read_bytes() == b"new"


def test_closed_process_leaves_files_but_no_pins(tmp_path: Path):
    cache = SegmentCache(tmp_path, 0)
    store(cache, "a")
    cache.temporary_path("b").write_bytes(b"unfinished")
    cache.close()
    assert not os.listdir(tmp_path / "procs")
    assert SegmentCache(tmp_path, 0).evict() == 1


WORKER = """
import os, random, sys
from pathlib import Path
from seachange.runtime.segment_cache import SegmentCache
seed, folder = int(sys.argv[1]), Path(sys.argv[2])
chance, cache = random.Random(seed), SegmentCache(folder, 12_000)
print("ready", flush=True)
while True:
    names = [f"{chance.randrange(40):02}" for _ in range(3)]
    for name in names:
        if not cache.pin(name):
            with cache.downloading(name):
                if not cache.pin(name):
                    cache.temporary_path(name).write_bytes(name.encode() * 500)
                    cache.adopt(name)
    cache.evict()
    for name in names:
        content = cache.path(name).read_bytes()
        if content != name.encode() * 500:
            print("wrong", name, len(content), flush=True)
        cache.unpin(name)
    print("round", flush=True)
"""


def start(folder: Path, seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(seed), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("kills", [4, pytest.param(80, marks=pytest.mark.slow)])
def test_killed_processes_leave_no_wrong_file_and_no_pin(tmp_path: Path, kills: int):
    chance = random.Random(7)
    processes = [start(tmp_path, seed) for seed in range(3)]
    lines: list[str] = []
    try:
        for number in range(kills):
            victim = chance.randrange(len(processes))
            process = processes[victim]
            assert process.stdout is not None
            lines += [process.stdout.readline() for _ in range(chance.randrange(2, 6))]
            process.kill()
            lines += process.communicate()[0].splitlines()
            processes[victim] = start(tmp_path, 100 + number)
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
            lines += process.communicate()[0].splitlines()
    assert not [line for line in lines if line.startswith("wrong")]
    assert any(line.startswith("round") for line in lines)
    cache = SegmentCache(tmp_path, 12_000)
    assert os.listdir(tmp_path / "procs") == [cache.path("x").parent.name]
    cache.evict()
    assert cache.contents().size_bytes <= 12_000
    for path in (tmp_path / "files").iterdir():
        assert path.read_bytes() == path.name.encode() * 500


def test_folder_that_is_being_made_is_not_swept(tmp_path: Path):
    cache = SegmentCache(tmp_path, 0)
    new = tmp_path / "procs" / ".new-1"
    new.mkdir()
    cache.sweep()
    assert new.exists()
    os.utime(new, (time.time() - PATIENCE_S, time.time() - PATIENCE_S))
    cache.sweep()
    assert not new.exists()
