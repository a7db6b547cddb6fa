"""Statements of one transaction lead to what they lead to one after the other."""

from itertools import count
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.errors import FeatureNotSupported
from seachange.model.schema.descriptor import Table
from seachange.planner.known_schema import KnownSchema
from tests.planner.builders.world import World

TEMPLATES = (
    "create table {r} (a serial, b int, c int generated always as (b) stored)",
    "create table {r} (a int primary key, b int unique, c text)",
    "create table {r} (a int generated always as identity, b {r}, c int references {r})",
    "drop table {r}, {r} cascade",
    "create sequence {r}",
    "drop sequence {r} cascade",
    "create type {r} as enum ('x', 'y')",
    "alter type {r} add value '{v}' before 'y'",
    "alter type {r} rename value '{v}' to '{v}'",
    "alter type {r} drop value '{v}'",
    "drop type {r} cascade",
    "create view {r} as select {c} from {r}",
    "drop view {r} cascade",
    "create schema o",
    "drop schema o cascade",
    "alter schema o rename to p",
    "alter schema p rename to o",
    "create index {n} on {r} ({c}) where {c} is not null",
    "create unique index {n} on {r} (({c} is null))",
    "drop index {r}",
    "alter table {r} rename to {n}",
    "alter type {r} rename to {n}",
    "alter table {r} set schema {s}",
    "alter table {r} drop column {c} cascade",
    "alter table {r} add column {c} {r}",
    "alter table {r} rename column {c} to {c}",
    "alter table {r} alter column {c} type bigint",
    "alter table {r} alter column {c} set default nextval('{r}')",
    "alter table {r} add foreign key ({c}) references {r} ({c})",
    "alter table {r} owner to {n}",
    "comment on table {r} is '{v}'",
    "comment on column {r}.{c} is '{v}'",
    "grant select, update on {r} to {n}",
    "revoke select on {r} from {n}",
)


def _statement(random: Random) -> str:
    text = random.choice(TEMPLATES)
    choices = {"r": ["t", "u", "m", "o.t", "o.m"], "n": "tum", "c": "abc", "v": "xyz", "s": ["o", "public"]}
    for gap, values in choices.items():
        while "{" + gap + "}" in text:
            text = text.replace("{" + gap + "}", random.choice(values), 1)
    return text


def _run_some(world: World, random: Random, number: int) -> list[str]:
    done: list[str] = []
    for _ in range(number * 8):
        text = _statement(random)
        if len(done) < number and world.code(text) is None:
            world.run(text)
            done.append(text)
    return done


def _shape(catalog: KnownSchema) -> list[str]:
    """What the descriptors say but for ids, which depend on the way."""
    names: dict[int, str] = {d.id: f"{getattr(d, 'schema', '')}.{d.name}" for d in catalog.descriptors.values()}
    found = []
    for descriptor in catalog.descriptors.values():
        access = descriptor.access
        privileges = sorted((p.role, p.privileges) for p in access.privileges)
        parts: list[object] = [names[descriptor.id], access.owner, privileges, sorted(c.text for c in access.comments)]
        if isinstance(descriptor, Table):
            parts += [(c.name, c.type.kind, names.get(c.type.enum), c.nullable) for c in descriptor.visible_columns]
            parts += sorted((i.name, i.unique, len(i.key)) for i in descriptor.indexes)
            parts += sorted((k.name, names[k.parent]) for k in descriptor.foreign_keys)
        parts += [value.label for value in getattr(descriptor, "values", ())]
        parts += [names[id_] for id_ in getattr(descriptor, "relation_ids", ())]
        found.append(str([type(descriptor).__name__, *parts]))
    return sorted(found)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_together_or_one_by_one(seed, empty):
    random = Random(seed)
    apart = World(empty=empty)
    _run_some(apart, random, random.randrange(20))
    together = World(empty=empty)
    together.catalog, together.ids = apart.catalog, count(10_000)
    statements = _run_some(apart, random, random.randrange(2, 12))
    try:
        together.run("; ".join(statements))
    except FeatureNotSupported:
        # Some things take two transactions, and say so.
        return
    assert _shape(together.catalog) == _shape(apart.catalog), statements
