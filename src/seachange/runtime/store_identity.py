"""The id of a database in an object store. See `identity.py` for the protocol."""

from __future__ import annotations

from contextlib import suppress

from seachange import errors
from seachange.runtime.checksum import new_digest
from seachange.runtime.entropy import Entropy
from seachange.runtime.faults import reach
from seachange.runtime.filesystem import IDENTITY_NAME
from seachange.runtime.identity import COPY_NAME, is_segment_file, new_identity, parse_identity
from seachange.runtime.object_store import ObjectStore


class StoreIdentity:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @property
    def address(self) -> str:
        return self._store.url

    def read(self) -> str | None:
        found = self._store.read(IDENTITY_NAME)
        return None if found is None else parse_identity(found.decode("ascii", "replace"), self.address)

    def segment_files(self) -> list[str]:
        return sorted(name for name in self._store.names() if is_segment_file(name))

    def propose(self, entropy: Entropy) -> str:
        proposed = new_identity(entropy)
        self._store.create(f"{IDENTITY_NAME}.{proposed}", _content(proposed))
        reach("identity.proposed")
        return proposed

    def confirm(self, bound: str) -> str | None:
        if self._store.read(f"{IDENTITY_NAME}.{bound}") is not None:
            with suppress(errors.FileExists):
                self._store.create(IDENTITY_NAME, _content(bound))
            reach("identity.settled")
        found = self.read()
        if found is not None:
            self._store.delete(list(self._store.names(f"{IDENTITY_NAME}.")))
        return found

    def withdraw(self, proposed: str) -> None:
        with suppress(errors.Error):
            self._store.delete([f"{IDENTITY_NAME}.{proposed}"])

    def note_copy(self, identity: str) -> None:
        self._store.create(f"{COPY_NAME}{identity}", _content(identity))

    def withdraw_copy(self, identity: str) -> None:
        with suppress(errors.Error):
            self._store.delete([f"{COPY_NAME}{identity}"])

    def copied_databases(self) -> list[str]:
        return [name.removeprefix(COPY_NAME) for name in self._store.names(COPY_NAME)]

    def size(self, name: str) -> int | None:
        found = self._store.head(name)
        return None if found is None else found.size_bytes

    def checksum(self, name: str) -> bytes:
        return new_digest(self._store.read(name) or b"").digest()

    def ignores_conditions(self, identity: str) -> bool:
        """Whether the store replaces an object that it was asked to create: the id is written once more, which changes
        nothing in either case."""
        return self._store.create(IDENTITY_NAME, _content(identity))


def _content(identity: str) -> bytes:
    return f"{identity}\n".encode("ascii")
