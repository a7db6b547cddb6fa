"""A commit that finds no memory, as beside a statement that takes too much, is decided once, and the next goes on."""

from collections.abc import Callable
from typing import Any

import pytest

from seachange import errors
from seachange.catalog.port import Catalog
from tests.catalog.builders import accept, register, request, submit


class NoMemory:
    """Raises MemoryError once: instead of the call that is meant, or after it."""

    def __init__(self, real: Any, method: str, is_meant: Callable[..., bool], after: bool) -> None:
        self._real = real
        self._method = method
        self._is_meant = is_meant
        self._after = after
        self._raised = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return self._call if name == self._method else found

    def _call(self, *arguments: Any) -> Any:
        work = getattr(self._real, self._method)
        if self._raised or not self._is_meant(*arguments):
            return work(*arguments)
        self._raised = True
        if self._after:
            work(*arguments)
        raise MemoryError


def starve_sqlite(catalog: Any, statement: str, after: bool) -> None:
    catalog._writer._db = NoMemory(catalog._writer._db, "execute", lambda text, *_: text == statement, after)


@pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("after", [False, True])
def test_lock_of_a_transaction_that_cannot_begin_is_free(catalog: Catalog, after: bool):
    epoch = register(catalog)
    starve_sqlite(catalog, "BEGIN IMMEDIATE", after)
    with pytest.raises(MemoryError):
        accept(catalog, epoch, writes=(1,))
    assert accept(catalog, epoch, writes=(1,)).seq == 1


@pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
def test_commit_that_did_not_take_place_never_will(catalog: Catalog):
    epoch, asked = register(catalog), request(catalog.head(), writes=(1,))
    starve_sqlite(catalog, "COMMIT", after=False)
    with pytest.raises(errors.OutOfMemory):
        submit(catalog, epoch, asked)
    assert catalog.outcome(asked.commit_id) is None
    assert accept(catalog, epoch, writes=(1,)).seq == 1


@pytest.mark.parametrize("catalog_url", ["sqlite", "postgres"], indirect=True)
def test_commit_that_took_place_is_reported(catalog: Catalog):
    epoch = register(catalog)
    if hasattr(catalog, "_writer"):
        starve_sqlite(catalog, "COMMIT", after=True)
    else:
        pool: Any = catalog
        pool._pool = NoMemory(pool._pool, "attempt", lambda *_: True, after=True)
    assert accept(catalog, epoch, writes=(1,)).seq == 1
    assert catalog.head() == 1
    assert accept(catalog, epoch, writes=(1,)).seq == 2
