"""Nodes whose ports a test chooses: clock, entropy, catalog. Production opens nodes in `engine/node/node.py`."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from seachange.catalog.open import open_catalog
from seachange.catalog.port import Catalog
from seachange.engine.database.opening import begin_queued
from seachange.engine.node.node import Node
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.ids import Epoch
from seachange.model.log import CommitRequest, Outcome
from seachange.planner.rules.release import CURRENT
from seachange.runtime.clock import SYSTEM_CLOCK, Clock, SystemClock
from seachange.runtime.entropy import SYSTEM_ENTROPY, Entropy, SystemEntropy
from seachange.runtime.location import DataLocation
from seachange.runtime.opening import CacheOptions, open_files
from seachange.storage.duck import Duck
from seachange.storage.warehouse import Warehouse

EXPIRY_MS = 10_000
STORE_FILE = "object-store.json"
HOUR_S = 3_600
HOUR_MS = HOUR_S * 1_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database is: its folder, and its catalog's URL if that is not a file in the folder. Its segments are in
    an object store if the folder says so (`put_in_store`); then it is the local folder of a machine."""

    data: Path
    catalog: str | None = None

    @property
    def segments(self) -> Path:
        return self.data / "segments"

    @property
    def location(self) -> DataLocation:
        """From now on this process reaches the store."""
        path = self.data / STORE_FILE
        if not path.exists():
            return DataLocation(self.data)
        store = json.loads(path.read_text())
        os.environ.update(store["environment"])
        return DataLocation(self.data, store["url"])

    @property
    def options(self) -> tuple[str, ...]:
        """Of a command that uses the database."""
        location = self.location
        data = ("--data", str(location), *(() if location.store is None else ("--local", str(self.data))))
        return data if self.catalog is None else (*data, "--catalog", self.catalog)


def put_in_store(data: Path, url: str, environment: Mapping[str, str]) -> None:
    """The segments of the database in this folder are in an object store, which is reached by the environment."""
    (data / STORE_FILE).write_text(json.dumps({"url": url, "environment": {**environment}}))


class ShiftedClock:
    """A machine's clock that goes wrong by a constant."""

    def __init__(self, offset_s: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._offset_us = offset_s * 1_000_000
        self._clock = clock

    def wall_us(self) -> int:
        return self._clock.wall_us() + self._offset_us

    def steady_us(self) -> int:
        return self._clock.steady_us() + self._offset_us


class AnnouncingEntropy(SystemEntropy):
    """Reports each token before it is used, like a client that records its commit ids."""

    def __init__(self, announce: Callable[[bytes], None], prefix: bytes = b"") -> None:
        self._announce = announce
        self._prefix = prefix

    def token(self, size_bytes: int) -> bytes:
        token = self._prefix + super().token(size_bytes - len(self._prefix))
        self._announce(token)
        return token


class UnfencedCatalog:
    """A catalog that takes whatever it is given: the half of the fence that is named in `without` is missing.

    "epoch": a dead epoch goes on under a secret one. "version": commits do not say what they were planned with.
    """

    def __init__(self, catalog: Catalog, without: frozenset[str]) -> None:
        self._catalog = catalog
        self._without = without
        self._secret = catalog.register_node("without a fence", 100 * HOUR_MS) if "epoch" in without else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def _epoch(self, epoch: Epoch) -> Epoch:
        return epoch if self._secret is None else self._secret

    def commit(self, epoch: Epoch, requests: list[CommitRequest]) -> tuple[Outcome, ...]:
        if "version" in self._without:
            requests = [replace(request, versions=()) for request in requests]
        return self._catalog.commit(self._epoch(epoch), requests)

    def heartbeat(self, epoch: Epoch, *rest: Any) -> Any:
        return self._catalog.heartbeat(self._epoch(epoch), *rest)

    def follow(self, epoch: Epoch, *rest: Any) -> Any:
        return self._catalog.follow(self._epoch(epoch), *rest)

    def descriptors(self, epoch: Epoch, *rest: Any) -> Any:
        return self._catalog.descriptors(self._epoch(epoch), *rest)

    def index_contents(self, epoch: Epoch, *rest: Any) -> Any:
        return self._catalog.index_contents(self._epoch(epoch), *rest)


def open_ported_node(
    place: Place,
    name: str = "test",
    expiry_ms: int = EXPIRY_MS,
    clock: Clock | None = None,
    entropy: Entropy = SYSTEM_ENTROPY,
    without_fence: frozenset[str] = frozenset(),
    release: int = CURRENT.number,
    threads: bool = True,
) -> Node:
    clock = clock or SystemClock()
    files = open_files(place.location.segments, CacheOptions(str(place.data / "cache")))
    catalog: Any = open_catalog(place.catalog, place.data, clock, entropy)
    if without_fence:
        catalog = UnfencedCatalog(catalog, without_fence)
    parts = NodeParts(
        data=place.data,
        catalog=catalog,
        files=files,
        warehouse=Warehouse(files),
        duck=Duck(place.data / "tmp"),
        clock=clock,
        entropy=entropy,
        release=release,
    )
    node = Node(parts, name, expiry_ms, threads=threads)
    node.jobs.begin = partial(begin_queued, node)
    # Compaction is a step of the tests' own, at a moment of their choosing.
    node.maintenance.paused = True
    return node
