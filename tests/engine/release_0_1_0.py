"""Databases and back-ups that release 0.1.0 made: without an id, and with inline rows that have no checksum.

Each has customers 1 to 21 and 201 orders, some of both inline. `postgres` has its catalog as a dump, `catalog.sql`.
"""

import tarfile
from pathlib import Path

import psycopg

_FOLDER = Path(__file__).parent / "testdata" / "release_0_1_0"
ORDERS = "select count(*), sum(amount) from orders"
ORDERS_FOUND = [(201, "25218.00")]


def unpack(name: str, folder: Path) -> Path:
    with tarfile.open(_FOLDER / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def unpack_database(kind: str, folder: Path, url: str | None) -> Path:
    """The data folder; a catalog on PostgreSQL is made in an empty database."""
    unpack(kind, folder)
    if url is not None:
        dump = folder / "catalog.sql"
        lines = [line for line in dump.read_text().splitlines() if not line.startswith("\\")]
        with psycopg.connect(url) as db:
            db.execute("\n".join(lines).encode())
        dump.unlink()
    return folder
