"""The examples of schema changes inside transactions, on both catalogs."""

import subprocess
import sys
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


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_migration_under_load(kind, tmp_path, request):
    catalog = ["--catalog", request.getfixturevalue("postgres_catalog_url")] if kind == "postgresql" else []
    command = [
        sys.executable,
        str(FOLDER / "under_load.py"),
        "--rows",
        "2000",
        "--data",
        str(tmp_path / "data"),
        *catalog,
    ]
    ended = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    assert " 0 failed" in ended.stdout


def test_every_example_is_listed():
    listed = (FOLDER / "README.md").read_text()
    assert [path.name for path in [*FILES, FOLDER / "under_load.py"] if f"]({path.name})" not in listed] == []
