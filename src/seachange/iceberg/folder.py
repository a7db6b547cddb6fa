"""The files of one exported table: metadata, manifests, deletes, and the rows that were in the catalog.

Readers that write into the location of a table find it swept: what no retained snapshot refers to is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange.runtime.filesystem import FileSystem, named_errors


@dataclass(frozen=True, slots=True)
class TableFolder:
    files: FileSystem

    @property
    def location(self) -> str:
        return self.files.address

    def address(self, name: str) -> str:
        """What metadata calls the file."""
        return f"{self.location}/{name}"

    def name_of(self, address: str) -> str | None:
        """The name of a file in this folder; None for others."""
        return address.removeprefix(f"{self.location}/") if address.startswith(f"{self.location}/") else None

    def write(self, name: str, content: bytes) -> str:
        """Publishes the file; returns its address."""
        path = self.files.temporary_path(name)
        with named_errors("write", path), open(path, "wb") as file:
            file.write(content)
        self.files.publish(name)
        return self.address(name)

    def read(self, address: str) -> bytes | None:
        """None if the file is missing, or belongs to another folder."""
        name = self.name_of(address)
        return None if name is None else self.files.read(name)

    def others(self, kept: frozenset[str]) -> list[str]:
        """The names of all files but these."""
        return [name for name in self.files.names() if name not in kept]
