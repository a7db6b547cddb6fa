"""Folders of migrations as five tools name them."""

from pathlib import Path

import pytest

from seachange import errors
from seachange.replay.history import Naming, order_files, read_history


@pytest.mark.parametrize(
    ("naming", "given", "steps", "left_out"),
    [
        (
            Naming.FLYWAY,
            ["V10__c.sql", "V2__b.sql", "V1__a.sql", "V1.1__ab.sql", "V1_2__ac.sql"],
            ["V1__a.sql", "V1.1__ab.sql", "V1_2__ac.sql", "V2__b.sql", "V10__c.sql"],
            [],
        ),
        (
            Naming.FLYWAY,
            ["R__b_view.sql", "R__a_view.sql", "sub/V3__x.sql", "V4__y.sql", "U4__y.sql", "notes.sql"],
            ["sub/V3__x.sql", "V4__y.sql", "R__a_view.sql", "R__b_view.sql"],
            ["U4__y.sql", "notes.sql"],
        ),
        (
            Naming.GOLANG_MIGRATE,
            ["10_c.up.sql", "9_b.up.sql", "9_b.down.sql", "1_a.up.sql", "1_a.down.sql"],
            ["1_a.up.sql", "9_b.up.sql", "10_c.up.sql"],
            ["1_a.down.sql", "9_b.down.sql"],
        ),
        (
            Naming.PRISMA,
            ["20240102000000_b/migration.sql", "20240101000000_a/migration.sql"],
            ["20240101000000_a/migration.sql", "20240102000000_b/migration.sql"],
            [],
        ),
        (
            Naming.DIESEL,
            ["2024-02-01-000000_b/up.sql", "2024-01-01-000000_a/up.sql", "2024-01-01-000000_a/down.sql"],
            ["2024-01-01-000000_a/up.sql", "2024-02-01-000000_b/up.sql"],
            ["2024-01-01-000000_a/down.sql"],
        ),
        (
            Naming.PLAIN,
            ["10_c.sql", "2_b.sql", "0001_a.sql", "seeds/rows.sql"],
            ["0001_a.sql", "2_b.sql", "10_c.sql"],
            ["seeds/rows.sql"],
        ),
        (Naming.PLAIN, ["b.sql", "a.sql"], ["a.sql", "b.sql"], []),
    ],
)
def test_each_naming_has_its_order(naming: Naming, given: list[str], steps: list[str], left_out: list[str]):
    assert order_files(given) == (naming, tuple(steps), tuple(left_out))


def test_a_folder_is_read_in_order(tmp_path: Path):
    for name in ("2_b", "1_a"):
        (tmp_path / f"{name}.sql").write_text(f"select '{name}'")
    history = read_history(tmp_path)
    assert [(m.name, m.text) for m in history.migrations] == [("1_a.sql", "select '1_a'"), ("2_b.sql", "select '2_b'")]


def test_a_file_is_a_history_of_one(tmp_path: Path):
    dump = tmp_path / "structure.sql"
    dump.write_text("\ufeffselect 1", encoding="utf-8")
    assert [m.text for m in read_history(dump).migrations] == ["select 1"]


def test_a_place_without_migrations_is_refused(tmp_path: Path):
    with pytest.raises(errors.HistoryProblem, match="no migrations"):
        read_history(tmp_path)
    with pytest.raises(errors.HistoryProblem, match="no such folder"):
        read_history(tmp_path / "nowhere")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    (tmp_path / "1.sql").write_bytes(b"select '\xff'")
    with pytest.raises(errors.HistoryProblem, match="decode"):
        read_history(tmp_path)
