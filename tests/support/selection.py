"""Which cases an ordinary run leaves to `--exhaustive`, by marks of tests and of their parameters.

`either_catalog`: the behaviour does not depend on the catalog, so each case runs on one of them. `one_in(n)`: cases
that differ little, of which one in so many runs. The name of a case decides, so every run has the same ones, and a test
with many cases has some of each kind. Every test keeps at least one case.
"""

from collections.abc import Iterable, Mapping
from math import prod
from zlib import crc32

import pytest

CATALOGS = ("sqlite", "postgresql", "postgres")


def leave_out(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The cases that are left out."""
    either: dict[str, dict[str, pytest.Item]] = {}
    rare: dict[str, dict[str, pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("either_catalog") and (kind := _catalog_of(item)):
            either.setdefault(item.nodeid.replace(kind, "", 1), {})[kind] = item
        if item.get_closest_marker("one_in"):
            rare.setdefault(item.nodeid.partition("[")[0], {})[item.nodeid] = item
    left_out = [item for case, variants in either.items() for item in _others(case, variants)]
    gone = set(left_out)
    for cases in rare.values():
        left = {name: item for name, item in cases.items() if item not in gone}
        chosen = _chosen(left)
        left_out += [item for name, item in left.items() if name not in chosen]
    return left_out


def _catalog_of(item: pytest.Item) -> str | None:
    """Among the parameters of a case."""
    values = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    return next((str(value) for value in values if value in CATALOGS), None)


def _others(case: str, variants: Mapping[str, pytest.Item]) -> list[pytest.Item]:
    """All variants but one."""
    kinds = sorted(variants)
    chosen = kinds[crc32(case.encode()) % len(kinds)]
    return [variants[kind] for kind in kinds if kind != chosen]


def _chosen(cases: Mapping[str, pytest.Item]) -> set[str]:
    found = {name for name, item in cases.items() if not crc32(name.encode()) % _share(item)}
    return found or set(sorted(cases)[:1])


def _share(item: pytest.Item) -> int:
    """That of a parameter is a part of that of its test."""
    return prod(int(mark.args[0]) for mark in item.iter_markers("one_in"))
