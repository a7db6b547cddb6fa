"""Whatever an element of a descriptor refers to, the descriptor is known as its user."""

from collections.abc import Iterator
from random import Random
from typing import Any, get_type_hints

from seachange.model.change.elements import Element
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.planner.object_parts import decompose
from seachange.planner.object_users import follow_users, referred_by, users_of
from tests.planner.world import World

SETUP = """
    create schema s; create type e as enum ('x'); create sequence free;
    create table a (id serial primary key, e e, es e[], n int generated always as identity,
        g int default nextval('free'));
    create table s.b (id int primary key references a, self int references s.b, free int default nextval('free'));
    create view v as select id, e from a; create view w as select v.id from v join s.b on v.id = b.id;
    alter sequence free owned by a.g
"""


def ids_in(element: Element) -> Iterator[int]:
    """By the types of its fields."""
    hints: dict[str, Any] = get_type_hints(type(element))
    for name, hint in hints.items():
        value = getattr(element, name)
        if hint in (DescriptorId, TableId):
            yield value
        elif hint == tuple[DescriptorId, ...]:
            yield from value
        elif hint == tuple[tuple[TableId, ColumnId], ...]:
            yield from (table_id for table_id, _ in value)
    yield getattr(element, "type_id", None) or 0


def world() -> World:
    world = World()
    world.run_each(SETUP)
    return world


def test_what_its_elements_refer_to():
    referring = 0
    for descriptor in world().catalog.descriptors.values():
        expected = {id_ for element in decompose(descriptor) for id_ in ids_in(element)} - {0, descriptor.id}
        assert referred_by(descriptor) == expected, descriptor.name
        referring += bool(expected)
    assert referring == 7


def test_all_that_is_connected():
    catalog = world().catalog
    by_name = {descriptor.name: id_ for id_, descriptor in catalog.descriptors.items()}
    all_but_schema = set(by_name.values()) - {by_name["s"]}
    assert catalog.connected([by_name["w"]]) == all_but_schema
    assert catalog.connected([by_name["s"]]) == {by_name["s"]}


def test_users_follow_changes():
    random, descriptors = Random(7), list(world().catalog.descriptors.values())
    there = dict.fromkeys(descriptors, False)
    users = users_of([])
    for _ in range(100):
        descriptor = random.choice(descriptors)
        users = follow_users(users, [(descriptor, None) if there[descriptor] else (None, descriptor)])
        there[descriptor] = not there[descriptor]
        assert users == users_of([found for found in descriptors if there[found]])
