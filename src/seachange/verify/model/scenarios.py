"""The explored scenarios: changes of every kind of element, with their reversal, one after the other."""

from __future__ import annotations

from dataclasses import replace

from seachange.model.change import elements
from seachange.verify.model.blocks import BlockScope
from seachange.verify.model.classic import ClassicScope
from seachange.verify.model.entries import NONE
from seachange.verify.model.layouts import LayoutScope
from seachange.verify.model.mutants import BLOCK_MUTANTS, CLASSIC_MUTANTS, MUTANTS, Mutant
from seachange.verify.model.references import ReferenceScope
from seachange.verify.model.row_state import Scope
from seachange.verify.model.scenario import (
    BlockFocus,
    ClassicFocus,
    LayoutFocus,
    Protocol,
    ReferenceFocus,
    RowFocus,
    Scenario,
    Size,
)

_TABLE = "create table t (id int primary key, a int)"
_INDEXED = f"{_TABLE}; create index i on t (a)"
_UNIQUE = f"{_TABLE}; create unique index u on t (a)"
_PAIR = "create table p (id int primary key, code text not null unique); create table t (id int primary key, a int)"
_REFERRED = f"{_PAIR}; alter table t add constraint f foreign key (a) references p"

_CREATE_INDEX = "create index i on t (a)"
_CREATE_UNIQUE = "create unique index u on t (a)"
# A text may not be a number.
_TEXTS = "create table t (id int primary key, a text)"
_CONVERT = "alter table t alter column a type int using a::int"

# One row with two values; two rows with one; one row with a value that a rule may forbid.
_ONE = Scope()
_TWO = Scope(rows=(0, NONE), values=1)
_RULE = Scope(values=2, bad=True)
# Two rows that may have one value, or none.
_KEYLESS = Scope(rows=(0, NONE), values=2, bad=True)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("create an index", _TABLE, (_CREATE_INDEX,), RowFocus(_ONE)),
    Scenario("create an index, two rows", _TABLE, (_CREATE_INDEX,), RowFocus(_TWO), Size.DEFAULT),
    Scenario("create an index, three nodes", _TABLE, (_CREATE_INDEX,), RowFocus(replace(_ONE, nodes=3)), Size.LARGE),
    Scenario(
        "create an index, nodes are stopped",
        _TABLE,
        (_CREATE_INDEX,),
        RowFocus(replace(_ONE, values=1, pauses=True)),
    ),
    Scenario(
        "create an index, workers are stopped",
        _TABLE,
        (_CREATE_INDEX,),
        RowFocus(replace(_ONE, nodes=1, workers=True)),
    ),
    Scenario(
        "create an index, compaction",
        _TABLE,
        (_CREATE_INDEX,),
        RowFocus(replace(_ONE, values=1, nodes=1, compaction=True)),
    ),
    Scenario(
        "create an index, two rows, compaction",
        _TABLE,
        (_CREATE_INDEX,),
        RowFocus(replace(_TWO, nodes=1, compaction=True)),
        Size.DEFAULT,
    ),
    Scenario(
        "create an index, two nodes, compaction",
        _TABLE,
        (_CREATE_INDEX,),
        RowFocus(replace(_ONE, values=1, compaction=True)),
        Size.LARGE,
    ),
    Scenario(
        "create an index on an empty table",
        _TABLE,
        (_CREATE_INDEX,),
        RowFocus(replace(_ONE, rows=(NONE,))),
        has_rows=False,
    ),
    Scenario("create and drop an index", _TABLE, (_CREATE_INDEX, "drop index i"), RowFocus(_ONE), Size.DEFAULT),
    Scenario("drop an index", _INDEXED, ("drop index i",), RowFocus(_ONE)),
    Scenario("drop a column with its index", _INDEXED, ("alter table t drop column a",), RowFocus(_ONE)),
    Scenario("drop a table", _INDEXED, ("drop table t",), RowFocus(_ONE)),
    Scenario("truncate a table", _INDEXED, ("truncate t",), RowFocus(_ONE)),
    Scenario("truncate a table, two rows", _UNIQUE, ("truncate t",), RowFocus(_TWO)),
    Scenario("create a unique index", _TABLE, (_CREATE_UNIQUE,), RowFocus(_TWO), Size.DEFAULT),
    Scenario(
        "create a unique index on an empty table",
        _TABLE,
        (_CREATE_UNIQUE,),
        RowFocus(replace(_TWO, rows=(NONE, NONE))),
        has_rows=False,
    ),
    Scenario("drop a unique index", _UNIQUE, ("drop index u",), RowFocus(_TWO)),
    Scenario(
        "replace a unique index",
        _UNIQUE,
        ("create unique index w on t (a)", "drop index u"),
        RowFocus(_TWO),
        Size.DEFAULT,
    ),
    Scenario("add a CHECK", _TABLE, ("alter table t add check (a > 0)",), RowFocus(_RULE)),
    Scenario(
        "add a CHECK, validate it later",
        _TABLE,
        ("alter table t add constraint k check (a > 0) not valid", "alter table t validate constraint k"),
        RowFocus(_RULE),
    ),
    Scenario(
        "drop a CHECK",
        "create table t (id int primary key, a int, constraint k check (a > 0))",
        ("alter table t drop constraint k",),
        RowFocus(_RULE),
    ),
    Scenario("set NOT NULL", _TABLE, ("alter table t alter column a set not null",), RowFocus(_RULE)),
    Scenario(
        "set NOT NULL where a CHECK says so, drop the CHECK",
        "create table t (id int primary key, a int, constraint k check (a is not null))",
        ("alter table t alter column a set not null", "alter table t drop constraint k"),
        RowFocus(_RULE),
    ),
    Scenario("convert a column", _TEXTS, (_CONVERT,), RowFocus(_RULE)),
    Scenario(
        "convert a column with an index",
        f"{_TEXTS}; {_CREATE_INDEX}",
        (_CONVERT,),
        RowFocus(_ONE),
        Size.DEFAULT,
    ),
    Scenario(
        "convert the primary key",
        "create table t (id int not null unique, a text primary key)",
        (_CONVERT,),
        RowFocus(replace(_KEYLESS, nodes=1)),
    ),
    Scenario(
        "convert the primary key, two nodes",
        "create table t (id int not null unique, a text primary key)",
        (_CONVERT,),
        RowFocus(_KEYLESS),
        Size.LARGE,
    ),
    Scenario(
        "add a column with a volatile default",
        _TABLE,
        ("alter table t add column c double precision not null default random()",),
        RowFocus(_ONE),
    ),
    Scenario(
        "change the primary key",
        _TABLE,
        ("alter table t alter primary key using columns (a)",),
        RowFocus(replace(_TWO, nodes=1)),
    ),
    Scenario(
        "change the primary key to one that is proven",
        "create table t (id int primary key, a int not null unique)",
        ("alter table t alter primary key using columns (a)",),
        RowFocus(_TWO),
        Size.DEFAULT,
    ),
    Scenario(
        "change the primary key of a table with a unique index",
        "create table t (id int primary key, a int, b int not null unique); create unique index u on t (a)",
        ("alter table t alter primary key using columns (b)",),
        RowFocus(_TWO),
        Size.LARGE,
    ),
    Scenario(
        "add a foreign key",
        _PAIR,
        ("alter table t add constraint f foreign key (a) references p",),
        ReferenceFocus(),
    ),
    Scenario(
        "add a foreign key, three nodes",
        _PAIR,
        ("alter table t add constraint f foreign key (a) references p",),
        ReferenceFocus(ReferenceScope(nodes=3)),
        Size.LARGE,
    ),
    Scenario(
        "add a foreign key, validate it later",
        _PAIR,
        (
            "alter table t add constraint f foreign key (a) references p not valid",
            "alter table t validate constraint f",
        ),
        ReferenceFocus(),
    ),
    Scenario(
        "add a column that refers",
        _PAIR,
        ("alter table t add column c int references p",),
        ReferenceFocus(),
    ),
    Scenario("drop a foreign key", _REFERRED, ("alter table t drop constraint f",), ReferenceFocus()),
    Scenario(
        "change the primary key that children refer to",
        _REFERRED,
        ("alter table p alter primary key using columns (code)",),
        ReferenceFocus(),
    ),
    Scenario(
        "add a column, change its default, drop it",
        _TABLE,
        (
            "alter table t add column c int default 7",
            "alter table t alter column c set default 8",
            "alter table t drop column c",
        ),
        LayoutFocus(),
    ),
    Scenario(
        "add a column, change its default, three nodes",
        _TABLE,
        ("alter table t add column c int default 7", "alter table t alter column c set default 8"),
        LayoutFocus(LayoutScope(nodes=3)),
        Size.DEFAULT,
    ),
    Scenario(
        "add a column that is NOT NULL",
        _TABLE,
        ("alter table t add column c int not null default 7",),
        LayoutFocus(),
    ),
    Scenario(
        "drop a column beside a change that can fail",
        "create table t (id int primary key, a int, c int not null)",
        ("alter table t drop column c, add check (a > 0)",),
        LayoutFocus(),
    ),
)

_CHECK = "alter table t add check (a > 0)"
_BLOCK_RULE = BlockScope(rows=(1,), values=(0, 1, 2), bad=2)
_DUPLICATE = BlockScope(rows=(1, 1))

BLOCK_SCENARIOS: tuple[Scenario, ...] = (
    Scenario("add a CHECK in a block", _TABLE, (_CHECK,), BlockFocus(_BLOCK_RULE)),
    Scenario(
        "add a CHECK in a block with a savepoint",
        _TABLE,
        (_CHECK,),
        BlockFocus(replace(_BLOCK_RULE, savepoints=True)),
    ),
    Scenario(
        "add a CHECK in a block, READ COMMITTED",
        _TABLE,
        (_CHECK,),
        BlockFocus(replace(_BLOCK_RULE, moves=True, savepoints=True)),
    ),
    Scenario("fix the rows and add a CHECK in a block", _TABLE, (_CHECK,), BlockFocus(replace(_BLOCK_RULE, rows=(2,)))),
    Scenario(
        "set NOT NULL in a block, two other writers",
        _TABLE,
        ("alter table t alter column a set not null",),
        BlockFocus(replace(_BLOCK_RULE, nodes=2)),
        Size.DEFAULT,
    ),
    Scenario("create a unique index in a block", _TABLE, (_CREATE_UNIQUE,), BlockFocus()),
    Scenario(
        "create a unique index in a block with a savepoint",
        _TABLE,
        (_CREATE_UNIQUE,),
        BlockFocus(BlockScope(savepoints=True)),
        Size.DEFAULT,
    ),
    Scenario(
        "create a unique index in a block, READ COMMITTED",
        _TABLE,
        (_CREATE_UNIQUE,),
        BlockFocus(BlockScope(moves=True)),
        Size.DEFAULT,
    ),
    Scenario(
        "fix a duplicate and create a unique index in a block",
        _TABLE,
        (_CREATE_UNIQUE,),
        BlockFocus(_DUPLICATE),
        Size.DEFAULT,
    ),
    Scenario(
        "fix a duplicate and create a unique index in a block, READ COMMITTED",
        _TABLE,
        (_CREATE_UNIQUE,),
        BlockFocus(replace(_DUPLICATE, moves=True)),
        Size.DEFAULT,
    ),
    Scenario(
        "create a unique index in a block, two other writers",
        _TABLE,
        (_CREATE_UNIQUE,),
        BlockFocus(BlockScope(nodes=2, writes=False, fails=False)),
        Size.LARGE,
    ),
)

CLASSIC_SCENARIOS: tuple[Scenario, ...] = (
    Scenario("create an index", _TABLE, (_CREATE_INDEX,), ClassicFocus(elements.SecondaryIndex)),
    Scenario("drop an index", _INDEXED, ("drop index i",), ClassicFocus(elements.SecondaryIndex)),
    Scenario("create a unique index", _TABLE, (_CREATE_UNIQUE,), ClassicFocus(elements.UniqueIndex)),
    Scenario("drop a unique index", _UNIQUE, ("drop index u",), ClassicFocus(elements.UniqueIndex)),
    Scenario(
        "add a column", _TABLE, ("alter table t add column c int default 7",), ClassicFocus(elements.ColumnElement)
    ),
    Scenario(
        "drop a column",
        "create table t (id int primary key, a int, c int)",
        ("alter table t drop column c",),
        ClassicFocus(elements.ColumnElement),
    ),
    Scenario(
        "add a CHECK",
        _TABLE,
        ("alter table t add check (a > 0)",),
        ClassicFocus(elements.CheckConstraint, ClassicScope(bad=True)),
    ),
    Scenario(
        "set NOT NULL",
        _TABLE,
        ("alter table t alter column a set not null",),
        ClassicFocus(elements.ColumnNotNull, ClassicScope(bad=True)),
    ),
    Scenario(
        "create an index, three servers and rows",
        _TABLE,
        (_CREATE_INDEX,),
        ClassicFocus(elements.SecondaryIndex, ClassicScope(rows=(0, NONE, 1), servers=3)),
        Size.DEFAULT,
    ),
)


def scenarios_of(protocol: Protocol, size: Size) -> tuple[Scenario, ...]:
    every = (*SCENARIOS, *BLOCK_SCENARIOS) if protocol is Protocol.SEACHANGE else CLASSIC_SCENARIOS
    return tuple(scenario for scenario in every if scenario.is_part_of(size))


def mutants_of(protocol: Protocol) -> dict[str, Mutant]:
    return MUTANTS | BLOCK_MUTANTS if protocol is Protocol.SEACHANGE else CLASSIC_MUTANTS
