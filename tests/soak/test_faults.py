"""A disk that is really full."""

import errno
from pathlib import Path

import pytest

from soak.faults import SmallDisk


def test_filled_disk_takes_no_more_and_emptied_one_does(tmp_path: Path):
    disk = SmallDisk(tmp_path / "disk", size_bytes=4 << 20)
    reason = disk.mount()
    if reason is not None:
        pytest.skip(reason)
    try:
        disk.fill()
        with pytest.raises(OSError, match="No space left") as caught:
            (disk.folder / "more").write_bytes(b"x" * 4096)
        assert caught.value.errno == errno.ENOSPC
        disk.empty()
        (disk.folder / "more").write_bytes(b"x" * 4096)
    finally:
        disk.unmount()
