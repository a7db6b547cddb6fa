"""Files in an object store: created once, read through the cache, in spite of a bad network."""

import errno
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("obstore", reason="obstore is not installed (make setup)")
pytest.importorskip("moto", reason="moto is not installed (make setup)")

from seachange import errors
from seachange.runtime.checksum import new_digest
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.filesystem import IDENTITY_NAME, StoredFile
from seachange.runtime.interruption import InterruptedBy
from seachange.runtime.nonblocking import WouldWait, non_blocking
from seachange.runtime.object_store import ObjectStore, Patience, Transferred
from seachange.runtime.segment_cache import SegmentCache
from seachange.runtime.store_files import StoreFiles
from seachange.runtime.store_identity import StoreIdentity
from tests.support.s3 import FaultProxy, S3Server, StoreServer, environment, fault_proxy

CONTENT = bytes(range(256)) * 1_000
Open = Callable[[str], StoreFiles]


@pytest.fixture
def proxy(store_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    with fault_proxy(store_server) as made:
        for name, value in store_server.environment(made.port).items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def url(store_server: StoreServer, proxy: FaultProxy) -> str:
    return f"{store_server.create_place()}/shop/segments"


def open_files(url: str, folder: Path, bytes_max: int = 1 << 30) -> StoreFiles:
    return StoreFiles(ObjectStore(url), SegmentCache(folder, bytes_max))


def write(files: StoreFiles, name: str, content: bytes = CONTENT) -> StoredFile:
    Path(files.temporary_path(name)).write_bytes(content)
    files.publish(name)
    return StoredFile(name, len(content), new_digest(content).digest())


def test_file_is_read_from_the_cache_of_its_writer(url: str, proxy: FaultProxy, tmp_path: Path):
    files = open_files(url, tmp_path)
    file = write(files, "a")
    before = proxy.faults.seen.total()
    with files.uses.using():
        (path,) = files.fetch([file])
        assert Path(path).read_bytes() == CONTENT
    assert files.open_input("a").read() == CONTENT
    assert proxy.faults.seen.total() == before
    assert (files.facts().hits, files.facts().misses) == (1, 0)


def test_missing_files_are_downloaded_once_per_machine(url: str, proxy: FaultProxy, tmp_path: Path):
    written = [write(open_files(url, tmp_path / "one"), name, name.encode() * 100) for name in "abc"]
    for _ in range(2):
        files = open_files(url, tmp_path / "other")
        paths = files.fetch(written)
        assert [Path(path).read_bytes() for path in paths] == [name.encode() * 100 for name in "abc"]
        files.close()
    assert proxy.faults.seen["GET"] == 3


def test_stopped_process_does_not_keep_others_from_downloading(url: str, tmp_path: Path):
    file = write(open_files(url, tmp_path / "one"), "a")
    stopped = SegmentCache(tmp_path / "two", 1 << 30)
    files = StoreFiles(ObjectStore(url), SegmentCache(tmp_path / "two", 1 << 30, wait_seconds=0.1))
    with stopped.downloading("a"), files.uses.using():
        (path,) = files.fetch([file])
        assert Path(path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("fault", "method", "times"),
    [
        ("throttle", "PUT", 3),
        ("reset", "PUT", 2),
        ("lose", "PUT", 1),
        ("conflict", "PUT", 2),
        ("throttle", "GET", 2),
        ("cut", "GET", 2),
    ],
)
def test_network_faults_are_overcome(url: str, proxy: FaultProxy, tmp_path: Path, fault: str, method: str, times: int):
    proxy.faults.add(fault, method, times, "/a")
    file = write(open_files(url, tmp_path / "one"), "a")
    (path,) = open_files(url, tmp_path / "other").fetch([file])
    assert Path(path).read_bytes() == CONTENT
    assert proxy.faults.seen[fault] == times


def test_slow_bodies_are_waited_for(url: str, proxy: FaultProxy, tmp_path: Path):
    file = write(open_files(url, tmp_path / "one"), "a")
    proxy.faults.add("slow", "GET")
    (path,) = open_files(url, tmp_path / "other").fetch([file])
    assert Path(path).read_bytes() == CONTENT


def test_object_is_never_replaced(url: str, tmp_path: Path):
    files = open_files(url, tmp_path)
    file = write(files, "a")
    # The same content is what a lost answer leaves.
    write(files, "a")
    with pytest.raises(errors.FileExists):
        write(files, "a", b"other")
    with pytest.raises(errors.FileExists):
        write(files, "a", CONTENT[::-1])
    (path,) = open_files(url, tmp_path / "other").fetch([file])
    assert Path(path).read_bytes() == CONTENT


def test_damaged_objects_are_refused(url: str, tmp_path: Path):
    files = open_files(url, tmp_path / "one")
    file = write(files, "a")
    other = open_files(url, tmp_path / "other")
    with pytest.raises(errors.SegmentDamaged, match="checksum"):
        other.fetch([StoredFile("a", file.size_bytes, b"x" * 16)])
    with pytest.raises(errors.SegmentDamaged, match="truncated"):
        other.fetch([StoredFile("a", file.size_bytes + 1, file.checksum)])
    with pytest.raises(errors.SegmentDamaged, match="missing"):
        other.fetch([StoredFile("b", 1, b"")])
    assert other.facts().files == 0


def test_damaged_copy_is_replaced(url: str, tmp_path: Path):
    files = open_files(url, tmp_path)
    file = write(files, "a")
    (copy,) = (tmp_path / "files").iterdir()
    copy.write_bytes(CONTENT[:-1])
    (path,) = files.fetch([file])
    assert Path(path).read_bytes() == CONTENT
    Path(path).write_bytes(CONTENT[::-1])
    assert files.refetch(file)
    assert Path(path).read_bytes() == CONTENT
    assert (tmp_path / "files" / "a").read_bytes() == CONTENT


def test_file_stays_until_its_readers_have_ended(url: str, tmp_path: Path):
    files = open_files(url, tmp_path, bytes_max=0)
    file = write(files, "a")
    reader = files.uses.begin()
    (path,) = files.fetch([file])
    evicted = files.facts().evictions
    later = files.uses.begin()
    files.tidy()
    assert Path(path).exists()
    files.uses.end(reader)
    # This one has begun after the path was given out.
    files.tidy()
    assert not Path(path).exists()
    assert files.facts().files == 0
    assert files.facts().evictions == evicted + 1
    files.uses.end(later)


@pytest.mark.parametrize("deleted", ["", "files", "locks", "procs"])
def test_cache_that_was_deleted_is_made_again(url: str, tmp_path: Path, deleted: str):
    """By a program that tidies up, while processes use it."""
    files, other = open_files(url, tmp_path / "cache"), open_files(url, tmp_path / "cache")
    before = write(files, "a")
    shutil.rmtree(tmp_path / "cache" / deleted)
    after = write(files, "b")
    for each in (files, other):
        with each.uses.using():
            assert [Path(path).read_bytes() for path in each.fetch([before, after])] == [CONTENT, CONTENT]
        each.tidy()
        assert each.facts().size_bytes >= len(CONTENT)
    # Each has a folder that a process that starts now leaves alone.
    folders = set((tmp_path / "cache" / "procs").iterdir())
    with closing(SegmentCache(tmp_path / "cache", 1)):
        assert folders <= set((tmp_path / "cache" / "procs").iterdir())
        assert len(folders) == 2


def test_readers_and_evictions_at_once(url: str, tmp_path: Path):
    files = open_files(url, tmp_path / "one")
    written = [write(files, name, name.encode() * 500) for name in "abcdef"]
    small = open_files(url, tmp_path / "other", bytes_max=1_000)
    problems: list[BaseException] = []

    def read(start: int) -> None:
        try:
            for turn in range(15):
                wanted = [written[(start + turn + step) % 6] for step in range(3)]
                with small.uses.using():
                    for file, path in zip(wanted, small.fetch(wanted), strict=True):
                        assert Path(path).read_bytes() == file.name.encode() * 500
        except BaseException as problem:  # noqa: BLE001 - reported by the test
            problems.append(problem)

    threads = [threading.Thread(target=read, args=(start,)) for start in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    small.tidy()
    assert small.facts().size_bytes <= 1_000
    assert small.facts().evictions > 0


class _FullDisk(ObjectStore):
    """The disk has no room for downloads until files of the cache are removed."""

    def __init__(self, url: str, cache: Path) -> None:
        super().__init__(url)
        self.cache = cache

    def download(self, name: str, path: Path) -> Transferred | None:
        if list((self.cache / "files").iterdir()):
            path.write_bytes(b"a part")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().download(name, path)


def test_full_disk_shrinks_the_cache(url: str, tmp_path: Path):
    first, second = (write(open_files(url, tmp_path / "one"), name) for name in "ab")
    files = StoreFiles(_FullDisk(url, tmp_path / "other"), SegmentCache(tmp_path / "other", 1 << 30))
    with files.uses.using():
        files.fetch([first])
        with pytest.raises(errors.DiskFull):
            files.fetch([second])
    # A failed download leaves no room taken.
    assert not list(tmp_path.rglob(".tmp-*"))
    (path,) = files.fetch([second])
    assert Path(path).read_bytes() == CONTENT
    assert (files.facts().files, files.facts().evictions) == (1, 1)


class _SmallDisk(SegmentCache):
    """A disk with room for a number of files of `CONTENT`."""

    room = 4

    def disk(self) -> tuple[int, int]:
        taken = {path.stat().st_ino: path.stat().st_size for path in self.folder.rglob("*") if path.is_file()}
        return self.room * len(CONTENT) - sum(taken.values()), self.room * len(CONTENT)


def test_cache_gives_way_to_files_that_are_written(url: str, tmp_path: Path):
    """The limit of the cache is above the size of the disk."""
    files = StoreFiles(ObjectStore(url), _SmallDisk(tmp_path, 1 << 30))
    for name in "abcdef":
        assert files.free_bytes() >= len(CONTENT) // 3
        write(files, name)
    assert files.facts().files == 3
    assert files.facts().evictions == 3
    with files.uses.using():
        assert len(files.fetch([stored("a"), stored("b")])) == 2
        # What is in use stays.
        assert all(Path(path).exists() for path in files.fetch([stored("a"), stored("b")]))


def stored(name: str) -> StoredFile:
    return StoredFile(name, len(CONTENT), new_digest(CONTENT).digest())


def test_interrupted_reader_does_not_wait_for_the_store(url: str, proxy: FaultProxy, tmp_path: Path):
    file = write(open_files(url, tmp_path / "one"), "a")
    files = open_files(url, tmp_path / "other")
    proxy.faults.add("stall", "GET", 1, "/a")

    def check() -> None:
        if proxy.uploading.is_set():
            raise InterruptedError

    with pytest.raises(InterruptedError), InterruptedBy(check):
        files.fetch([file])
    assert not proxy.release.is_set()
    proxy.release.set()
    (path,) = files.fetch([file])
    assert Path(path).read_bytes() == CONTENT


def test_objects_in_folders_below_are_those_of_others(url: str, tmp_path: Path):
    write(open_files(f"{url}/segments", tmp_path / "below"), "b")
    files = open_files(url, tmp_path / "above")
    write(files, "a")
    assert files.names() == ["a"]


def test_event_loop_does_not_download(url: str, tmp_path: Path):
    file = write(open_files(url, tmp_path / "one"), "a")
    other = open_files(url, tmp_path / "other")
    with non_blocking(), pytest.raises(WouldWait):
        other.fetch([file])
    other.fetch([file])
    with non_blocking():
        other.fetch([file])


def test_files_are_deleted_in_batches(url: str, proxy: FaultProxy, tmp_path: Path):
    files = open_files(url, tmp_path)
    names = [f"{number:016x}.parquet" for number in range(8)]
    for name in names:
        write(files, name, b"x")
    assert files.names() == names
    before = proxy.faults.seen.total()
    files.delete([*names, "missing"])
    if url.startswith("s3:"):
        assert proxy.faults.seen.total() == before + 1
    assert files.names() == []
    assert files.facts().files == 0
    assert not files.has(names[0])


def test_existence_is_asked_for_once(url: str, proxy: FaultProxy, tmp_path: Path):
    files = open_files(url, tmp_path)
    write(open_files(url, tmp_path / "other"), "a")
    assert not files.has("b")
    before = proxy.faults.seen.total()
    assert files.has("a")
    assert files.has("a")
    assert proxy.faults.seen.total() == before + 1


def test_id_is_created_in_three_steps(url: str):
    place = StoreIdentity(ObjectStore(url))
    assert place.read() is None
    proposed = place.propose(SYSTEM_ENTROPY)
    lost = place.propose(SYSTEM_ENTROPY)
    assert place.read() is None
    assert place.confirm("0" * 32) is None
    assert place.confirm(proposed) == proposed
    # The proposals are gone, so no other id can be confirmed.
    assert place.confirm(lost) == proposed
    assert list(ObjectStore(url).names()) == [IDENTITY_NAME]
    assert not place.ignores_conditions(proposed)


ONLY_S3 = pytest.mark.parametrize("store_server", ["s3"], indirect=True)


@ONLY_S3
@pytest.mark.parametrize(
    ("change", "reason", "remedy"),
    [
        ({"bucket": "no-such-bucket"}, "the bucket does not exist", "address of the bucket"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "the connection failed", "AWS_ENDPOINT_URL"),
    ],
)
def test_errors_name_the_cause_and_no_secret(
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: dict[str, str],
    reason: str,
    remedy: str,
):
    for name, value in change.items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.DEBUG), pytest.raises(errors.StoreProblem) as caught:
        ObjectStore(f"s3://{change.get('bucket', 'any')}/shop", Patience(retries=0, attempts=1)).create("a", b"x")
    assert reason in str(caught.value)
    assert remedy in (caught.value.hint or "")
    everything = f"{caught.value}{caught.value.__cause__}{caught.value.detail}{caplog.text}"
    assert "secret-of-the-test" not in everything


@ONLY_S3
@pytest.mark.parametrize(
    ("fault", "method", "reason"),
    [
        ("throttle", "PUT", "the store is overloaded (503)"),
        ("throttle", "GET", "the store is overloaded (503)"),
        ("expire", "PUT", "the credentials have expired"),
        ("expire", "GET", "the credentials have expired"),
        ("reset", "PUT", "the connection was lost"),
        ("vanish", "GET", "the bucket does not exist"),
    ],
)
def test_lasting_faults_are_errors_that_pass(url: str, proxy: FaultProxy, fault: str, method: str, reason: str):
    store = ObjectStore(url, Patience(retries=1, attempts=1))
    assert store.create("a", b"x")
    # The library repeats what may succeed.
    proxy.faults.add(fault, method, 1 if fault in ("expire", "vanish") else 2)
    with pytest.raises(errors.StoreProblem) as caught:
        store.create("b", b"y") if method == "PUT" else store.read("a")
    assert caught.value.sqlstate == "58030"
    assert reason in str(caught.value)
    assert store.create("b", b"y") is not None
    assert store.read("a") == b"x"


@pytest.mark.slow
@pytest.mark.parametrize("store_server", ["azure"], indirect=True)
@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("bm90LXRoZS1rZXk=", "the account key or token is wrong"),
        ("not base 64", "the account key cannot be decoded"),
    ],
)
def test_wrong_key_of_azure_is_named(url: str, monkeypatch: pytest.MonkeyPatch, key: str, reason: str):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", key)
    with pytest.raises(errors.StoreProblem, match=reason) as caught:
        ObjectStore(url, Patience(retries=0, attempts=1)).create("a", b"x")
    assert key not in f"{caught.value}{caught.value.__cause__}{caught.value.detail}"


@ONLY_S3
def test_keys_of_a_profile_are_used(
    s3_server: S3Server, url: str, proxy: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in environment(0):
        monkeypatch.delenv(name)
    (tmp_path / "config").write_text(
        f"[profile here]\nregion = eu-west-1\nendpoint_url = http://127.0.0.1:{proxy.port}\n"
    )
    (tmp_path / "keys").write_text("[here]\naws_access_key_id = test\naws_secret_access_key = of-the-profile\n")
    monkeypatch.setenv("AWS_PROFILE", "here")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "keys"))
    store = ObjectStore(url)
    assert store.create("a", b"x")
    assert store.read("a") == b"x"


UPLOAD = """
import sys
from pathlib import Path
from seachange.runtime.object_store import ObjectStore, Patience, Transferred
from seachange.runtime.segment_cache import SegmentCache
from seachange.runtime.store_files import StoreFiles
files = StoreFiles(ObjectStore(sys.argv[1]), SegmentCache(Path(sys.argv[2]), 1 << 30))
Path(files.temporary_path("a")).write_bytes(b"x" * 10_000_000)
files.publish("a")
"""


def test_killed_upload_leaves_no_object(url: str, proxy: FaultProxy, tmp_path: Path):
    proxy.faults.add("stall", "PUT", 1, "/a")
    process = subprocess.Popen([sys.executable, "-c", UPLOAD, url, str(tmp_path)])
    assert proxy.uploading.wait(600)
    process.kill()
    process.wait()
    proxy.release.set()
    files = open_files(url, tmp_path)
    assert files.size("a") is None
    # The staged file went with the folder of the dead process.
    assert not list(tmp_path.rglob(".tmp-*"))
    assert files.facts().files == 0
