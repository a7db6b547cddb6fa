"""Reports of what blocks a drop, and of what is dropped with it."""

import pytest

from seachange import errors
from tests.planner.builders.world import World

SETUP = """
create table p (id int primary key, g int);
create table c (id int primary key, p int references p);
create view v as select id, g from p;
create view w as select id from v;
create type mood as enum ('a');
create sequence q;
create table u (m mood, n int default nextval('q'), i int generated always as identity);
create schema s;
create table s.a (id serial);
create view va as select id from s.a
"""
_P = ("view v depends on table p", "view w depends on view v")
# A drop, what it is called, and everything that depends on it.
DROPS = [
    ("drop table p", "table p", (*_P, "constraint c_p_fkey on table c depends on table p")),
    ("drop table p, c", "table p", _P),
    ("drop view v", "view v", ("view w depends on view v",)),
    ("drop type mood", "type mood", ("column m of table u depends on type mood",)),
    ("drop sequence q", "sequence q", ("default value for column n of table u depends on sequence q",)),
    ("drop schema s", "schema s", ("table s.a depends on schema s", "view va depends on table s.a")),
    ("alter table p drop column g", "column g of table p", ("view v depends on column g of table p", _P[1])),
]


@pytest.mark.parametrize(("statement", "what", "dependents"), DROPS)
def test_all_dependents_are_reported(statement, what, dependents):
    world = World(SETUP)
    with pytest.raises(errors.DependentObjectsExist) as caught:
        world.run(statement)
    assert str(caught.value) == f"cannot drop {what} because other objects depend on it"
    assert caught.value.detail == "\n".join(dependents)
    assert caught.value.hint is not None
    plan = world.run(f"{statement} cascade")
    gone = [line.split(" depends on ")[0] for line in dependents]
    (notice,) = plan.notices
    told = gone[0] if len(gone) == 1 else f"{len(gone)} other objects: {', '.join(gone)}"
    assert notice == f"drop cascades to {told}"


@pytest.mark.parametrize(
    ("statement", "owner"),
    [
        ("drop index p_pkey", "constraint p_pkey on table p"),
        ("drop sequence u_i_seq cascade", "column i of table u"),
        ("drop type p cascade", "table p"),
    ],
)
def test_what_only_goes_with_its_owner(statement, owner):
    with pytest.raises(errors.RequiredObject) as caught:
        World(SETUP).run(statement)
    assert str(caught.value).endswith(f"because {owner} requires it")
    assert caught.value.hint == f"You can drop {owner} instead."
