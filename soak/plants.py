"""Planted defects: each removes a safeguard from the engine in this process, to prove that the soak detects it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from seachange.catalog.postgres import PostgresCatalog
from seachange.catalog.sqlite import SqliteCatalog
from seachange.engine.constraints import computed_values, foreign_key, uncommitted
from seachange.engine.transaction.transaction import Transaction


def plant_fence_off() -> None:
    """Commits do not declare the versions that they were planned with: one below min_version is accepted."""
    for catalog in (SqliteCatalog, PostgresCatalog):
        _replace(catalog, "commit", _unfenced)


def _unfenced(commit: Callable[..., Any]) -> Callable[..., Any]:
    def commit_unfenced(self: Any, epoch: Any, requests: Any) -> Any:
        return commit(self, epoch, [replace(request, versions=()) for request in requests])

    return commit_unfenced


def plant_no_conflicts() -> None:
    """Commits do not declare what they wrote and read: nothing conflicts between nodes."""
    for catalog in (SqliteCatalog, PostgresCatalog):
        _replace(catalog, "commit", _without_conflicts)


def _without_conflicts(commit: Callable[..., Any]) -> Callable[..., Any]:
    def commit_silently(self: Any, epoch: Any, requests: Any) -> Any:
        return commit(self, epoch, [replace(request, writes=(), shares=(), bulk=()) for request in requests])

    return commit_silently


def plant_frozen_snapshot() -> None:
    """A READ COMMITTED block keeps the snapshot of its first statement."""
    _replace(Transaction, "start_statement", _frozen)


def _frozen(start_statement: Callable[..., Any]) -> Callable[..., Any]:
    def start_once(self: Any) -> None:
        if not self.used:
            start_statement(self)

    return start_once


def plant_unchecked_constraints() -> None:
    """Sessions do not record that they violate a constraint which a block has not committed yet."""
    for module in (uncommitted, foreign_key, computed_values):
        _replace(module, "record", _ignored)


def _ignored(_record: Callable[..., Any]) -> Callable[..., Any]:
    def ignore(*_: Any) -> None:
        pass

    return ignore


def _replace(owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    setattr(owner, name, wrap(getattr(owner, name)))


PLANTS: dict[str, Callable[[], None]] = {
    "fence-off": plant_fence_off,
    "frozen-snapshot": plant_frozen_snapshot,
    "no-conflicts": plant_no_conflicts,
    "unchecked-constraints": plant_unchecked_constraints,
}
