"""Scenarios: changes to a small database, and the model that checks them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from seachange.model.change.elements import Element
from seachange.planner.lifecycles.f1 import F1_LIFECYCLES
from seachange.planner.rules.release import CURRENT, Release
from seachange.verify.model.block_references import BlockReferenceModel, BlockReferenceScope
from seachange.verify.model.blocks import BlockModel, BlockScope
from seachange.verify.model.classic import ClassicModel, ClassicScope
from seachange.verify.model.explore import Model
from seachange.verify.model.layouts import LayoutModel, LayoutScope
from seachange.verify.model.mutants import Mutant, edit_lifecycles, switches_of
from seachange.verify.model.program import Parse, Program, compile_program
from seachange.verify.model.references import ReferenceModel, ReferenceScope
from seachange.verify.model.restored import RestoreModel, RestoreScope
from seachange.verify.model.row_state import Scope
from seachange.verify.model.rows import RowModel
from seachange.verify.model.side_by_side import compile_side_by_side
from seachange.verify.model.switches import Switches


class Protocol(StrEnum):
    SEACHANGE = "seachange"
    F1 = "f1"


class Size(StrEnum):
    """Which scenarios are explored: the quick ones, all, and all with more nodes and rows."""

    SMALL = "small"
    DEFAULT = "default"
    LARGE = "large"


_SIZES = tuple(Size)


@dataclass(frozen=True, slots=True)
class RowFocus:
    """The table and the column that the model of rows checks."""

    scope: Scope = field(default_factory=Scope)
    table: str = "t"
    column: str = "a"

    def build(self, program: Program, switches: Switches) -> Model:
        return RowModel(program, self.table, self.column, self.scope, switches)


@dataclass(frozen=True, slots=True)
class ReferenceFocus:
    scope: ReferenceScope = field(default_factory=ReferenceScope)

    def build(self, program: Program, switches: Switches) -> Model:
        return ReferenceModel(program, self.scope, switches)


@dataclass(frozen=True, slots=True)
class LayoutFocus:
    scope: LayoutScope = field(default_factory=LayoutScope)
    column: str = "c"

    def build(self, program: Program, switches: Switches) -> Model:
        return LayoutModel(program, self.column, self.scope, switches)


@dataclass(frozen=True, slots=True)
class RestoreFocus:
    """The change brings a column back."""

    scope: RestoreScope = field(default_factory=RestoreScope)
    column: str = "c"

    def build(self, program: Program, switches: Switches) -> Model:
        return RestoreModel(program, self.column, self.scope, switches)


@dataclass(frozen=True, slots=True)
class ClassicFocus:
    element: type[Element]
    scope: ClassicScope = field(default_factory=ClassicScope)

    def build(self, program: Program, switches: Switches) -> Model:
        return ClassicModel(program, self.element, self.scope, switches)


@dataclass(frozen=True, slots=True)
class BlockFocus:
    """The change is that of a transaction block."""

    scope: BlockScope = field(default_factory=BlockScope)

    def build(self, program: Program, switches: Switches) -> Model:
        return BlockModel(program, self.scope, switches)


@dataclass(frozen=True, slots=True)
class BlockReferenceFocus:
    """The change is the foreign key of a transaction block."""

    scope: BlockReferenceScope = field(default_factory=BlockReferenceScope)

    def build(self, program: Program, switches: Switches) -> Model:
        return BlockReferenceModel(program, self.scope, switches)


Focus = RowFocus | ReferenceFocus | LayoutFocus | RestoreFocus | ClassicFocus | BlockFocus | BlockReferenceFocus


@dataclass(frozen=True, slots=True)
class Scenario:
    """`changes` are made one after the other to the result of `setup`, or two `side_by_side` if the planner lets them.
    `size` is the smallest in which it is explored."""

    name: str
    setup: str
    changes: tuple[str, ...]
    focus: Focus
    size: Size = Size.SMALL
    has_rows: bool = True
    side_by_side: bool = False

    def is_part_of(self, size: Size) -> bool:
        return _SIZES.index(self.size) <= _SIZES.index(size)


def build_model(scenario: Scenario, protocol: Protocol, mutants: tuple[Mutant, ...], parse: Parse) -> Model:
    release = release_of(protocol, mutants)
    switches = switches_of(mutants)
    if scenario.side_by_side:
        both = compile_side_by_side(parse, scenario.setup, scenario.changes, release, switches)
        return scenario.focus.build(both, switches)
    in_block = isinstance(scenario.focus, BlockFocus | BlockReferenceFocus)
    program = compile_program(parse, scenario.setup, scenario.changes, release, scenario.has_rows, switches, in_block)
    return scenario.focus.build(program, switches)


def release_of(protocol: Protocol, mutants: tuple[Mutant, ...]) -> Release:
    if protocol is Protocol.SEACHANGE and not any(mutant.edits for mutant in mutants):
        return CURRENT
    classic = F1_LIFECYCLES if protocol is Protocol.F1 else {}
    return replace(
        CURRENT,
        lifecycles=edit_lifecycles({**CURRENT.lifecycles, **classic}, mutants),
        in_block=edit_lifecycles(CURRENT.in_block, mutants),
    )
