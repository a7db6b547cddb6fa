"""Spool folders: removed by their owner, or by a later writer."""

from pathlib import Path

from seachange.engine.dataframes.dataframe_write import spool_folder, sweep_spool
from seachange.model.ids import Epoch


def test_only_unused_folders_are_removed(tmp_path: Path) -> None:
    parent = tmp_path / "spool"
    with spool_folder(tmp_path, Epoch(3), b"\x01") as own, spool_folder(tmp_path, Epoch(3), b"\x02") as done:
        for folder in (own, parent / "3-ff", parent / "4-aa", parent / "5-bb"):
            (folder / "_temporary").mkdir(parents=True)
        (parent / "unknown").mkdir()
        sweep_spool(tmp_path, lambda: {Epoch(4)})
        assert sorted(f.name for f in parent.iterdir()) == ["3-01", "4-aa", "unknown"]
    # A task that writes on after its end.
    done.mkdir()
    assert not own.exists()
    sweep_spool(tmp_path, lambda: {Epoch(4)})
    assert not done.exists()


def test_new_node_keeps_its_folder(tmp_path: Path) -> None:
    coming, left = tmp_path / "spool" / "7-cc", tmp_path / "spool" / "6-dd"
    left.mkdir(parents=True)

    def come() -> set[Epoch]:
        coming.mkdir()
        return set()

    sweep_spool(tmp_path, come)
    assert coming.exists()
    assert not left.exists()
