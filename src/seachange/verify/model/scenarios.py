"""The explored scenarios: changes of every kind of element, with their reversal, one after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.verify.model.block_references import BlockReferenceScope
from seachange.verify.model.blocks import BlockScope
from seachange.verify.model.classic import ClassicScope
from seachange.verify.model.entries import NONE
from seachange.verify.model.layouts import LayoutScope
from seachange.verify.model.mutants import (
    BESIDE_MUTANTS,
    BLOCK_MUTANTS,
    CLASSIC_MUTANTS,
    MUTANTS,
    RETURN_MUTANTS,
    Mutant,
)
from seachange.verify.model.references import ReferenceScope
from seachange.verify.model.restored import RestoreScope
from seachange.verify.model.row_state import Scope
from seachange.verify.model.scenario import (
    BlockFocus,
    BlockReferenceFocus,
    ClassicFocus,
    LayoutFocus,
    Protocol,
    ReferenceFocus,
    RestoreFocus,
    RowFocus,
    Scenario,
    Size,
)

_TABLE = "create table t (id int primary key, a int)"
_INDEXED = f"{_TABLE}; create index i on t (a)"
_UNIQUE = f"{_TABLE}; create unique index u on t (a)"
_PAIR = "create table p (id int primary key, code text not null unique); create table t (id int primary key, a int)"

_CREATE_INDEX = "create index i on t (a)"
_CREATE_UNIQUE = "create unique index u on t (a)"
# A text may not be a number.
_TEXTS = "create table t (id int primary key, a text)"
_TEXT_KEY = "create table t (id int not null unique, a text primary key)"
_CONVERT = "alter table t alter column a type int using a::int"
_ADD_COLUMN = "alter table t add column c int default 7"
_REFER = "alter table t add constraint f foreign key (a) references p"
_CHECK = "alter table t add check (a > 0)"
_OTHER_INDEX = "create index j on t (a)"
_OTHER_UNIQUE = "create unique index w on t (a)"
_NAMED_CHECK = "alter table t add constraint k check (a > 0)"
_OTHER_CHECK = "alter table t add constraint l check (a < 9)"
_NOT_NULL_CHECK = "alter table t add constraint k check (a is not null)"
_SET_NOT_NULL = "alter table t alter column a set not null"
_REFERRED = f"{_PAIR}; {_REFER}"
_OTHER_TABLE = "create table o (id int primary key)"

# One row with two values; two rows with one; one row with a value that a rule may forbid.
_ONE = Scope()
_TWO = Scope(rows=(0, NONE), values=1)
_RULE = Scope(values=2, bad=True)
# Two rows that may have one value, or none.
_KEYLESS = Scope(rows=(0, NONE), values=2, bad=True)

_BLOCK = BlockScope()
_BLOCK_RULE = BlockScope(rows=(1,), values=(0, 1, 2), bad=2)
_DUPLICATE = BlockScope(rows=(1, 1))


# Scenarios of each model; `scope` and other arguments say how much of it is explored.


def _rows(
    name: str,
    setup: str,
    *changes: str,
    scope: Scope = _ONE,
    size: Size = Size.SMALL,
    has_rows: bool = True,
    **scoped: Any,
) -> Scenario:
    return Scenario(name, setup, changes, RowFocus(replace(scope, **scoped)), size, has_rows)


def _references(name: str, setup: str, *changes: str, size: Size = Size.SMALL, **scoped: Any) -> Scenario:
    return Scenario(name, setup, changes, ReferenceFocus(ReferenceScope(**scoped)), size)


def _layouts(name: str, setup: str, *changes: str, size: Size = Size.SMALL, **scoped: Any) -> Scenario:
    return Scenario(name, setup, changes, LayoutFocus(LayoutScope(**scoped)), size)


def _restored(name: str, setup: str, *changes: str, size: Size = Size.SMALL, **scoped: Any) -> Scenario:
    return Scenario(name, setup, changes, RestoreFocus(RestoreScope(**scoped)), size)


def _beside(
    name: str, setup: str, *changes: str, scope: Scope = _ONE, size: Size = Size.SMALL, nodes: int = 1, **scoped: Any
) -> Scenario:
    focus = RowFocus(replace(scope, nodes=nodes, **scoped))
    return Scenario(name, setup, changes, focus, size, side_by_side=True)


def _block(
    name: str, setup: str, *changes: str, scope: BlockScope = _BLOCK, size: Size = Size.SMALL, **scoped: Any
) -> Scenario:
    return Scenario(name, setup, changes, BlockFocus(replace(scope, **scoped)), size)


def _block_references(name: str, size: Size = Size.SMALL, **scoped: Any) -> Scenario:
    return Scenario(name, _PAIR, (_REFER,), BlockReferenceFocus(BlockReferenceScope(**scoped)), size)


def _classic(
    name: str, element: type[Element], setup: str, *changes: str, size: Size = Size.SMALL, **scoped: Any
) -> Scenario:
    return Scenario(name, setup, changes, ClassicFocus(element, ClassicScope(**scoped)), size)


SCENARIOS: tuple[Scenario, ...] = (
    _rows("create an index", _TABLE, _CREATE_INDEX),
    _rows("create an index, two rows", _TABLE, _CREATE_INDEX, scope=_TWO, size=Size.DEFAULT),
    _rows("create an index, three nodes", _TABLE, _CREATE_INDEX, nodes=3, size=Size.LARGE),
    _rows("create an index, nodes are stopped", _TABLE, _CREATE_INDEX, values=1, pauses=True),
    _rows("create an index, workers are stopped", _TABLE, _CREATE_INDEX, nodes=1, workers=True),
    _rows("create an index, compaction", _TABLE, _CREATE_INDEX, values=1, nodes=1, compaction=True),
    _rows(
        "create an index, two rows, compaction",
        _TABLE,
        _CREATE_INDEX,
        scope=_TWO,
        nodes=1,
        compaction=True,
        size=Size.DEFAULT,
    ),
    _rows("create an index, two nodes, compaction", _TABLE, _CREATE_INDEX, values=1, compaction=True, size=Size.LARGE),
    _rows("create an index on an empty table", _TABLE, _CREATE_INDEX, rows=(NONE,), has_rows=False),
    _rows("create and drop an index", _TABLE, _CREATE_INDEX, "drop index i", size=Size.DEFAULT),
    _rows("drop an index", _INDEXED, "drop index i"),
    _rows("drop a column with its index", _INDEXED, "alter table t drop column a"),
    _rows("drop a table", _INDEXED, "drop table t"),
    _rows("truncate a table", _INDEXED, "truncate t"),
    _rows("truncate a table, two rows", _UNIQUE, "truncate t", scope=_TWO),
    _rows("create a unique index", _TABLE, _CREATE_UNIQUE, scope=_TWO, size=Size.DEFAULT),
    _rows(
        "create a unique index on an empty table", _TABLE, _CREATE_UNIQUE, scope=_TWO, rows=(NONE, NONE), has_rows=False
    ),
    _rows("drop a unique index", _UNIQUE, "drop index u", scope=_TWO),
    _rows(
        "replace a unique index",
        _UNIQUE,
        "create unique index w on t (a)",
        "drop index u",
        scope=_TWO,
        size=Size.DEFAULT,
    ),
    _rows("add a CHECK", _TABLE, _CHECK, scope=_RULE),
    _rows(
        "add a CHECK, validate it later",
        _TABLE,
        "alter table t add constraint k check (a > 0) not valid",
        "alter table t validate constraint k",
        scope=_RULE,
    ),
    _rows(
        "drop a CHECK",
        "create table t (id int primary key, a int, constraint k check (a > 0))",
        "alter table t drop constraint k",
        scope=_RULE,
    ),
    _rows("set NOT NULL", _TABLE, _SET_NOT_NULL, scope=_RULE),
    _rows(
        "set NOT NULL where a CHECK says so, drop the CHECK",
        "create table t (id int primary key, a int, constraint k check (a is not null))",
        _SET_NOT_NULL,
        "alter table t drop constraint k",
        scope=_RULE,
    ),
    _rows("convert a column", _TEXTS, _CONVERT, scope=_RULE),
    _rows("convert a column with an index", f"{_TEXTS}; {_CREATE_INDEX}", _CONVERT, size=Size.DEFAULT),
    _rows("convert the primary key", _TEXT_KEY, _CONVERT, scope=_KEYLESS, nodes=1),
    _rows("convert the primary key, two nodes", _TEXT_KEY, _CONVERT, scope=_KEYLESS, size=Size.LARGE),
    _rows(
        "add a column with a volatile default",
        _TABLE,
        "alter table t add column c double precision not null default random()",
    ),
    _rows("change the primary key", _TABLE, "alter table t alter primary key using columns (a)", scope=_TWO, nodes=1),
    _rows(
        "change the primary key to one that is proven",
        "create table t (id int primary key, a int not null unique)",
        "alter table t alter primary key using columns (a)",
        scope=_TWO,
        size=Size.DEFAULT,
    ),
    _rows(
        "change the primary key of a table with a unique index",
        "create table t (id int primary key, a int, b int not null unique); create unique index u on t (a)",
        "alter table t alter primary key using columns (b)",
        scope=_TWO,
        size=Size.LARGE,
    ),
    _references("add a foreign key", _PAIR, _REFER),
    _references("add a foreign key, three nodes", _PAIR, _REFER, nodes=3, size=Size.LARGE),
    _references(
        "add a foreign key, validate it later",
        _PAIR,
        "alter table t add constraint f foreign key (a) references p not valid",
        "alter table t validate constraint f",
    ),
    _references("add a column that refers", _PAIR, "alter table t add column c int references p"),
    _references("drop a foreign key", _REFERRED, "alter table t drop constraint f"),
    _references(
        "change the primary key that children refer to",
        _REFERRED,
        "alter table p alter primary key using columns (code)",
    ),
    _layouts(
        "add a column, change its default, drop it",
        _TABLE,
        _ADD_COLUMN,
        "alter table t alter column c set default 8",
        "alter table t drop column c",
    ),
    _layouts(
        "add a column, change its default, three nodes",
        _TABLE,
        _ADD_COLUMN,
        "alter table t alter column c set default 8",
        nodes=3,
        size=Size.DEFAULT,
    ),
    _layouts("add a column that is NOT NULL", _TABLE, "alter table t add column c int not null default 7"),
    _layouts(
        "drop a column beside a change that can fail",
        "create table t (id int primary key, a int, c int not null)",
        "alter table t drop column c, add check (a > 0)",
    ),
)

# What REVERT CHANGE and UNDROP bring back, after a last statement of the set-up has taken it away.
_WITH_COLUMN = "create table t (id int primary key, a int, c int)"
_WITH_REQUIRED = "create table t (id int primary key, a int, c int not null)"
_DROP_COLUMN, _DROP_TABLE = "alter table t drop column c", "drop table t"
RETURN_SCENARIOS: tuple[Scenario, ...] = (
    _restored("bring a column back", f"{_WITH_COLUMN}; {_DROP_COLUMN}", "revert change 2"),
    _restored("bring a column back, three nodes", f"{_WITH_COLUMN}; {_DROP_COLUMN}", "revert change 2", nodes=3),
    _restored("bring back a column that is NOT NULL", f"{_WITH_REQUIRED}; {_DROP_COLUMN}", "revert change 2"),
    _rows("bring a table back", f"{_INDEXED}; {_DROP_TABLE}", "undrop table t"),
    _rows("bring a table back, two rows", f"{_UNIQUE}; {_DROP_TABLE}", "undrop table t", scope=_TWO),
    _layouts("bring a table back: a column", f"{_WITH_COLUMN}; {_DROP_TABLE}", "undrop table t"),
    _layouts("create a table", _OTHER_TABLE, _WITH_REQUIRED),
)

# Two jobs of one table: each pair of kinds that may overlap, and pairs that must not.
BESIDE_SCENARIOS: tuple[Scenario, ...] = (
    _beside("two indexes side by side", _TABLE, _CREATE_INDEX, _OTHER_INDEX, values=1),
    _beside("two indexes side by side, two values", _TABLE, _CREATE_INDEX, _OTHER_INDEX, size=Size.LARGE),
    _beside(
        "two indexes side by side, two nodes", _TABLE, _CREATE_INDEX, _OTHER_INDEX, nodes=2, values=1, size=Size.LARGE
    ),
    _beside(
        "an index and a unique index side by side", _TABLE, _CREATE_INDEX, _CREATE_UNIQUE, values=1, size=Size.DEFAULT
    ),
    _beside("two unique indexes side by side", _TABLE, _CREATE_UNIQUE, _OTHER_UNIQUE, values=1, size=Size.LARGE),
    _beside("an index and a CHECK side by side", _TABLE, _CREATE_INDEX, _CHECK, scope=_RULE),
    _beside("a unique index and a CHECK side by side", _TABLE, _CREATE_UNIQUE, _CHECK, scope=_RULE, size=Size.DEFAULT),
    _beside(
        "a unique index and a CHECK side by side, two rows",
        _TABLE,
        _CREATE_UNIQUE,
        _CHECK,
        scope=_TWO,
        size=Size.DEFAULT,
    ),
    _beside("two CHECKs side by side", _TABLE, _NAMED_CHECK, _OTHER_CHECK, scope=_RULE),
    _beside(
        "an index beside VALIDATE CONSTRAINT",
        f"{_TABLE}; {_NAMED_CHECK} not valid",
        "alter table t validate constraint k",
        _CREATE_INDEX,
        scope=_RULE,
    ),
    _beside("NOT NULL beside a CHECK that says so", _TABLE, _NOT_NULL_CHECK, _SET_NOT_NULL, scope=_RULE),
    _beside(
        "a unique index and NOT NULL beside a CHECK that says so",
        _TABLE,
        _NOT_NULL_CHECK,
        f"{_SET_NOT_NULL}, add constraint u unique (a)",
        scope=_RULE,
        size=Size.DEFAULT,
    ),
    _beside("TRUNCATE during CREATE INDEX", _TABLE, _CREATE_INDEX, "truncate t"),
    _beside("DROP COLUMN during CREATE INDEX", _TABLE, _CREATE_INDEX, "alter table t drop column a"),
)

BLOCK_SCENARIOS: tuple[Scenario, ...] = (
    _block("add a CHECK in a block", _TABLE, _CHECK, scope=_BLOCK_RULE),
    _block("add a CHECK in a block with a savepoint", _TABLE, _CHECK, scope=_BLOCK_RULE, savepoints=True),
    _block("add a CHECK in a block, READ COMMITTED", _TABLE, _CHECK, scope=_BLOCK_RULE, savepoints=True, moves=True),
    _block("fix the rows and add a CHECK in a block", _TABLE, _CHECK, scope=_BLOCK_RULE, rows=(2,)),
    _block(
        "set NOT NULL in a block, two other writers",
        _TABLE,
        _SET_NOT_NULL,
        scope=_BLOCK_RULE,
        nodes=2,
        size=Size.DEFAULT,
    ),
    _block("create a unique index in a block", _TABLE, _CREATE_UNIQUE),
    _block(
        "create a unique index in a block with a savepoint", _TABLE, _CREATE_UNIQUE, savepoints=True, size=Size.DEFAULT
    ),
    _block("create a unique index in a block, READ COMMITTED", _TABLE, _CREATE_UNIQUE, moves=True, size=Size.DEFAULT),
    _block(
        "fix a duplicate and create a unique index in a block",
        _TABLE,
        _CREATE_UNIQUE,
        scope=_DUPLICATE,
        size=Size.DEFAULT,
    ),
    _block(
        "fix a duplicate and create a unique index in a block, READ COMMITTED",
        _TABLE,
        _CREATE_UNIQUE,
        scope=_DUPLICATE,
        moves=True,
        size=Size.DEFAULT,
    ),
    _block(
        "create a unique index in a block, two other writers",
        _TABLE,
        _CREATE_UNIQUE,
        nodes=2,
        writes=False,
        fails=False,
        size=Size.LARGE,
    ),
    _block_references("add a foreign key in a block"),
    _block_references("insert the parent and add a foreign key in a block", parent=False, child=True),
    _block_references("add a foreign key to a table of the same block", parent=False, unseen=True),
    _block_references("add a foreign key in a block, two other writers", nodes=2, writes=False),
    _block_references("add a foreign key in a block with own rows, two other writers", nodes=2, size=Size.LARGE),
)

CLASSIC_SCENARIOS: tuple[Scenario, ...] = (
    _classic("create an index", elements.SecondaryIndex, _TABLE, _CREATE_INDEX),
    _classic("drop an index", elements.SecondaryIndex, _INDEXED, "drop index i"),
    _classic("create a unique index", elements.UniqueIndex, _TABLE, _CREATE_UNIQUE),
    _classic("drop a unique index", elements.UniqueIndex, _UNIQUE, "drop index u"),
    _classic("add a column", elements.ColumnElement, _TABLE, _ADD_COLUMN),
    _classic(
        "drop a column",
        elements.ColumnElement,
        "create table t (id int primary key, a int, c int)",
        "alter table t drop column c",
    ),
    _classic("add a CHECK", elements.CheckConstraint, _TABLE, _CHECK, bad=True),
    _classic("set NOT NULL", elements.ColumnNotNull, _TABLE, _SET_NOT_NULL, bad=True),
    _classic(
        "create an index, three servers and rows",
        elements.SecondaryIndex,
        _TABLE,
        _CREATE_INDEX,
        rows=(0, NONE, 1),
        servers=3,
        size=Size.DEFAULT,
    ),
)


def scenarios_of(protocol: Protocol, size: Size) -> tuple[Scenario, ...]:
    every = (
        (*SCENARIOS, *RETURN_SCENARIOS, *BESIDE_SCENARIOS, *BLOCK_SCENARIOS)
        if protocol is Protocol.SEACHANGE
        else CLASSIC_SCENARIOS
    )
    return tuple(scenario for scenario in every if scenario.is_part_of(size))


def mutants_of(protocol: Protocol) -> dict[str, Mutant]:
    return (
        MUTANTS | RETURN_MUTANTS | BESIDE_MUTANTS | BLOCK_MUTANTS if protocol is Protocol.SEACHANGE else CLASSIC_MUTANTS
    )
