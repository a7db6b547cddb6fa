"""A file is never replaced by a rename, whatever the file system can do."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seachange import errors
from seachange.runtime import renaming
from seachange.runtime.filesystem import LocalFileSystem


@pytest.mark.parametrize("way", renaming.WAYS, ids=lambda way: way.__name__)
def test_each_way_renames_and_never_replaces(tmp_path: Path, way):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"new")
    way(str(source), str(target))
    assert (target.read_bytes(), source.exists()) == (b"new", False)
    source.write_bytes(b"other")
    with pytest.raises(FileExistsError):
        way(str(source), str(target))
    assert (target.read_bytes(), source.read_bytes()) == (b"new", b"other")


@pytest.mark.parametrize("way", renaming.WAYS, ids=lambda way: way.__name__)
def test_of_many_that_give_one_name_one_does(tmp_path: Path, way):
    def attempt(number: int) -> bool:
        source = tmp_path / f"source{number}"
        source.write_text(str(number))
        try:
            way(str(source), str(tmp_path / "target"))
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(attempt, range(8)))
    assert done.count(True) == 1
    assert (tmp_path / "target").read_text() == str(done.index(True))


def test_a_link_that_was_made_before_its_answer_was_lost_is_no_other_file(tmp_path: Path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"new")
    os.link(source, target)
    renaming.WAYS[1](str(source), str(target))
    assert (target.read_bytes(), source.exists()) == (b"new", False)


def refuse(source: str, target: str) -> None:
    raise OSError(errno.EOPNOTSUPP, "not here")


@pytest.mark.parametrize("missing", [1, 2])
def test_a_file_system_without_a_way_uses_the_next(tmp_path: Path, missing: int):
    ways = (*[refuse] * missing, *renaming.WAYS[missing:])
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"new")
    renaming.rename_new(str(source), str(target), ways)
    source.write_bytes(b"other")
    with pytest.raises(FileExistsError):
        renaming.rename_new(str(source), str(target), ways)
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("durable", [True, False])
def test_a_published_file_is_not_replaced(tmp_path: Path, durable: bool):
    files = LocalFileSystem(tmp_path)
    for content in (b"first", b"second"):
        Path(files.temporary_path("a")).write_bytes(content)
        if content == b"first":
            files.publish("a", durable)
    with pytest.raises(errors.FileExists) as caught:
        files.publish("a", durable)
    assert caught.value.sqlstate == "58P02"
    assert Path(files.path("a")).read_bytes() == b"first"
