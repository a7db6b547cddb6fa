"""Every file of SQL tests, on one of the catalogs."""

from pathlib import Path

import pytest

import seachange
from tests.sql.slt import Runner, read_records
from tests.support.databases import catalog_kind, place, place_for
from tests.support.nodes import Place

__all__ = ["catalog_kind", "place", "place_for"]

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.slt"))


def run_file(path: Path, data: Path, catalog: str | None) -> None:
    runner = Runner(data, catalog)
    try:
        for record in read_records(path.read_text()):
            try:
                runner.run(record)
            except Exception as error:
                error.add_note(f"{path.parent.name}/{path.name}:{record.line}: {record.sql}")
                raise
    finally:
        runner.close()


@pytest.mark.either_catalog
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_file(path: Path, place: Place):
    run_file(path, place.data, place.catalog)


@pytest.mark.parametrize(
    "text",
    [
        "statement ok\nselect nope",
        "statement error 42601\nselect nope",
        "statement error 42601\nselect 1",
        "query I\nselect 1\n----\n2",
        "query II\nselect 1\n----\n1",
        "statement count 2\nselect 1",
    ],
)
def test_the_runner_can_fail(text, tmp_path):
    path = tmp_path / "sql" / "wrong.slt"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises((AssertionError, seachange.Error)):
        run_file(path, tmp_path / "data", None)


def test_there_is_something_to_run():
    assert sum(len(list(read_records(path.read_text()))) for path in FILES) > 200
