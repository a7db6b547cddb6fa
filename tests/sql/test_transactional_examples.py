"""The examples of schema changes inside transactions, on both catalogs."""

from pathlib import Path

import pytest

from tests.sql.test_slt import run_file

FOLDER = Path(__file__).parents[2] / "examples" / "transactional"
FILES = sorted(FOLDER.glob("*.slt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example_on_sqlite(path, tmp_path):
    run_file(path, tmp_path, None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example_on_postgres(path, tmp_path, postgres_catalog_url):
    run_file(path, tmp_path, postgres_catalog_url)


def test_every_example_is_listed():
    listed = (FOLDER / "README.md").read_text()
    assert [path.name for path in FILES if f"]({path.name})" not in listed] == []
