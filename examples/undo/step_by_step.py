"""A history of migrations is applied, and then reverted change by change, the newest first.

    python examples/undo/step_by_step.py [FOLDER] [--data DIR] [--catalog URL]

FOLDER has files of SQL, by default MediaWiki's (examples/wiki); each is one transaction. What the tables, columns,
indexes and constraints were before a change is compared with what its revert leaves.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import seachange
from seachange.cli.main import main as seachange_command

DEFINITIONS = (
    """select table_name, column_name, data_type, column_default, is_nullable from information_schema.columns
       where table_schema = 'public' order by table_name, ordinal_position""",
    "select indexname, indexdef from pg_indexes where schemaname = 'public' order by 1",
    "select conname, contype, convalidated, pg_get_constraintdef(oid) from pg_constraint order by 1, 2",
    "select relname, relkind from pg_class where relnamespace = 2200 order by 1",
)


def definitions(connection: seachange.Connection) -> list[list[object]]:
    return [[tuple(row) for row in connection.execute(sql)] for sql in DEFINITIONS]


def last_change(connection: seachange.Connection) -> int:
    ((found,),) = connection.execute("select coalesce(max(id), 0) from seachange.changes").fetchall()
    return int(found)


def run(folder: Path, data: str, catalog: str | None) -> int:
    applied: list[tuple[int, str, list[list[object]]]] = []
    wrong = 0
    with seachange.connect(data=data, catalog=catalog, autocommit=True) as connection:
        for path in sorted(folder.glob("*.sql")):
            before, newest = definitions(connection), last_change(connection)
            connection.execute(f"begin; {path.read_text().rstrip().rstrip(';')}; commit")
            if last_change(connection) != newest:
                applied.append((last_change(connection), path.name, before))
        for number, name, before in reversed(applied):
            try:
                connection.execute(f"revert change {number}")
            except seachange.Error as problem:
                print(f"{name}: {problem}")
                wrong += 1
                continue
            same = definitions(connection) == before
            wrong += not same
            print(f"{name}: {'as before' if same else 'NOT as before'}")
    print(f"{len(applied)} changes, {wrong} of them not reverted")
    command = ["check", "--full", "--data", data, *(["--catalog", catalog] if catalog is not None else [])]
    return wrong or seachange_command(command)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1] / "wiki")
    parser.add_argument("--data")
    parser.add_argument("--catalog")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return run(given.folder, given.data or str(Path(folder) / "data"), given.catalog)


if __name__ == "__main__":
    sys.exit(main())
