"""Finding, creating and refusing catalogs."""

import sqlite3
from pathlib import Path, PurePosixPath

import psycopg
import pytest

from seachange import errors
from seachange.catalog.open import open_catalog
from seachange.catalog.port import FORMAT, Catalog
from seachange.catalog.postgres import schema as postgres_schema
from seachange.catalog.sqlite import schema as sqlite_schema
from seachange.catalog.sqlite.connections import file_system_of
from seachange.model.locking import LockOwner, LockPolicy
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from tests.catalog.builders import accept, register
from tests.catalog.conftest import Opener

MOUNTS = r"""21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:30 / /home rw - nfs4 server:/home rw
23 22 0:31 / /home/me/fast rw - xfs /dev/sdb1 rw
24 21 0:32 / /mnt/with\040blank rw master:2 - cifs //server/share rw
25 21 0:33 / /mnt/twice rw - ext4 /dev/sdc1 rw
26 21 0:34 / /mnt/twice rw - fuse.sshfs me@server: rw
"""


def set_format(url: str, number: int) -> None:
    if url.startswith("sqlite"):
        db = sqlite3.connect(url.removeprefix("sqlite:///"))
        with db:
            db.execute("UPDATE sequencer SET format = ?", (number,))
        db.close()
        return
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE seachange.sequencer SET format = %s", (number,))


def test_a_catalog_is_found_again(open_one: Opener):
    first = open_one()
    accept(first, register(first))
    first.close()
    assert open_one().head() == 1


def test_the_default_lies_in_the_data_folder(tmp_path: Path):
    catalog = open_catalog(None, tmp_path, SYSTEM_CLOCK, SYSTEM_ENTROPY)
    assert str(tmp_path) in catalog.url
    catalog.close()
    again = open_catalog(catalog.url, Path(), SYSTEM_CLOCK, SYSTEM_ENTROPY)
    assert again.url == catalog.url
    again.close()


def test_a_newer_format_is_refused(open_one: Opener, catalog_url: str):
    catalog = open_one()
    epoch = register(catalog)
    set_format(catalog_url, FORMAT + 1)
    with pytest.raises(errors.CatalogFormatTooNew):
        open_one()
    # A program that was running while another one upgraded gets no new epoch.
    with pytest.raises(errors.CatalogFormatTooNew):
        register(catalog)
    set_format(catalog_url, FORMAT)
    accept(catalog, epoch)


def make_format_1(url: str) -> None:
    if url.startswith("sqlite"):
        db = sqlite3.connect(url.removeprefix("sqlite:///"))
        with db:
            sqlite_schema.run_script(db, sqlite_schema.MIGRATIONS[0])
        db.close()
    else:
        with psycopg.connect(url) as connection:
            postgres_schema.run_script(connection, postgres_schema.MIGRATIONS[0])
    set_format(url, 1)


def test_an_older_format_is_upgraded(open_one: Opener, catalog_url: str):
    make_format_1(catalog_url)
    catalog = open_one()
    epoch = register(catalog)
    accept(catalog, epoch, writes=[1])
    catalog.take_locks(epoch, LockOwner(1, 1), (), LockPolicy.SKIP, 1)
    assert {node.format for node in catalog.nodes()} == {FORMAT}


@pytest.mark.parametrize(
    "url",
    ["mysql://host/db", "sqlite:", "sqlite://host/path", "sqlite:////no/folder", "", "postgresql://u@127.0.0.1:1/x"],
)
def test_what_is_no_catalog_is_refused(tmp_path: Path, url: str):
    expected = errors.CatalogUnavailable if url.startswith("postgresql") else errors.InvalidCatalog
    with pytest.raises(expected):
        open_catalog(url, tmp_path, SYSTEM_CLOCK, SYSTEM_ENTROPY)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path):
    path = tmp_path / "catalog.sqlite"
    path.write_bytes(b"not a database" * 1_000)
    with pytest.raises(errors.InvalidCatalog):
        open_catalog(None, tmp_path, SYSTEM_CLOCK, SYSTEM_ENTROPY)


def test_a_closed_catalog_says_so(catalog: Catalog):
    catalog.close()
    with pytest.raises(errors.CatalogUnavailable):
        catalog.head()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/data", "ext4"),
        ("/home/me/data", "nfs4"),
        ("/home/me/fast/data", "xfs"),
        ("/home/me/faster", "nfs4"),
        ("/mnt/with blank/data", "cifs"),
        ("/mnt/twice/data", "fuse.sshfs"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_its_nearest_mount(path: str, expected: str):
    assert file_system_of(PurePosixPath(path), MOUNTS) == expected
