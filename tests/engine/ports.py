"""A catalog that a test can make fail, or wait, at a call of its choice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from seachange.catalog.open import open_catalog
from seachange.catalog.port import Catalog
from seachange.engine.node.node import Node
from seachange.engine.replica.node_parts import NodeParts
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.filesystem import LocalFileSystem
from seachange.storage.duck import Duck
from seachange.storage.warehouse import Warehouse

HOUR_MS = 3_600_000


class HookedCatalog:
    """Runs a hook before each call of the method that it is set for, or changes what the method returns."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.before: dict[str, Callable[[], None]] = {}
        self.after: dict[str, Callable[[Any], Any]] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._catalog, name)
        hook, change = self.before.get(name), self.after.get(name)
        if hook is None and change is None:
            return found

        def call(*args: Any, **named: Any) -> Any:
            if hook is not None:
                hook()
            answer = found(*args, **named)
            return answer if change is None else change(answer)

        return call


def hooked_parts(data: Path) -> tuple[NodeParts, HookedCatalog]:
    catalog = HookedCatalog(open_catalog(None, data, SYSTEM_CLOCK, SYSTEM_ENTROPY))
    files = LocalFileSystem(data / "segments")
    parts = NodeParts(
        data=data,
        catalog=cast(Catalog, catalog),
        files=files,
        warehouse=Warehouse(files),
        duck=Duck(data / "tmp"),
        clock=SYSTEM_CLOCK,
        entropy=SYSTEM_ENTROPY,
    )
    return parts, catalog


def open_hooked(data: Path, name: str = "hooked") -> tuple[Node, HookedCatalog]:
    """A node whose heart beats only when the test says so."""
    parts, catalog = hooked_parts(data)
    node = Node(parts, name, expiry_ms=HOUR_MS)
    node.maintenance.paused = True
    return node, catalog
