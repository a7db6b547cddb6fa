"""Values that a transaction draws: those of sequences, and of defaults that are expressions.

**Invariant:** a statement that is run again is given the values that it was given first (`drawn_values.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from seachange import errors
from seachange.engine.buffer.current_statement import CurrentStatement
from seachange.engine.buffer.rights import Rights
from seachange.engine.buffer.schema_view import SchemaView
from seachange.engine.buffer.snapshot import TransactionSnapshot
from seachange.engine.context.sequences import DrawnValues
from seachange.engine.encode.defaults import DefaultValues
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.ids import DescriptorId, Epoch
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Column
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.schema.rights import OnObject
from seachange.model.schema.sequences import SequenceState
from seachange.model.states import State


@dataclass(frozen=True, slots=True)
class SequenceValues:
    """`SequencePort`; `drawn` is what the session has drawn last."""

    parts: NodeParts
    epoch: Epoch
    snapshot: TransactionSnapshot
    statement: CurrentStatement
    schema: SchemaView
    rights: Rights
    drawn: DrawnValues

    # Defaults.

    def defaults(self, column: Column, count: int) -> list[Any]:
        if column.is_row_id:
            first = self.parts.rowids.take(self.epoch, count)
            return list(range(first, first + count))
        is_seen = column.state is State.PUBLIC
        if count and column.identity is None and is_seen:
            self._check_drawn(column)
        draw = partial(self._draw, is_seen)
        values = DefaultValues(self.parts.duck, self.parts.entropy, self.statement.moments, draw)
        return self.statement.tape.draw(column, count, lambda count: values.of(column, count))

    def _check_drawn(self, column: Column) -> None:
        """A default draws on behalf of the role that inserts, unless it is an identity."""
        for sequence_id in column.default_sequences:
            if not self.rights.is_root and not self.rights.allows(OnObject(sequence_id, ("USAGE", "UPDATE"))):
                sequence = self.schema.object_by_id(sequence_id)
                name = sequence.name if sequence is not None else sequence_id
                raise errors.InsufficientPrivilege(detail=f"permission denied for sequence {name}")

    def _draw(self, is_seen: bool, sequence_id: DescriptorId, count: int) -> list[int]:
        """What is drawn for a column that its writer does not see is no value of the session."""
        sequence = self.schema.object_by_id(sequence_id)
        if not isinstance(sequence, SequenceObject):
            raise errors.Bug(detail=f"a default draws from sequence {sequence_id}, which is not there")
        return self._take_values(sequence, count, is_seen) if count else []

    # Sequences.

    def _take_values(self, sequence: SequenceObject, count: int, is_seen: bool = True) -> list[int]:
        if self.snapshot.is_past:
            raise errors.ReadOnlyTransaction(command="nextval()")
        values = self.parts.sequences.take(sequence, count)
        if is_seen:
            self.drawn.note(sequence, values[-1])
        return values

    def _sequence(self, name: RelationName) -> SequenceObject:
        found = self.schema.relation(name.schema, name.name)
        if not isinstance(found, SequenceObject):
            raise errors.WrongObjectType(name=name, kind="sequence")
        return found

    def next_values(self, name: RelationName, count: int) -> list[int]:
        sequence = self._sequence(name)
        self.rights.check_access(sequence, "USAGE", "UPDATE")
        return self.statement.tape.record(
            ("nextval", sequence.id), count, lambda count: self._take_values(sequence, count)
        )

    def current_value(self, name: RelationName) -> int:
        sequence = self._sequence(name)
        self.rights.check_access(sequence, "USAGE", "SELECT")
        (value,) = self.statement.tape.record(("currval", sequence.id), 1, lambda _: [self.drawn.current(sequence)])
        return int(value)

    def last_value(self) -> int:
        (value,) = self.statement.tape.record("lastval", 1, lambda _: [self._last_drawn()])
        return int(value)

    def _last_drawn(self) -> int:
        last = self.drawn.last
        sequence = self.schema.object_by_id(last) if last is not None else None
        if not isinstance(sequence, SequenceObject):
            raise errors.NotInPrerequisiteState(detail="lastval is not yet defined in this session")
        return self.drawn.current(sequence)

    def set_value(self, name: RelationName, value: int, called: bool) -> None:
        if self.snapshot.is_past:
            raise errors.ReadOnlyTransaction(command="setval()")
        sequence = self._sequence(name)
        self.rights.check_access(sequence, "UPDATE")

        def set_once(_: int) -> list[int]:
            self.parts.sequences.set(sequence, value, called)
            if called:
                self.drawn.by_sequence[sequence.id] = value
            return [value]

        self.statement.tape.record(("setval", sequence.id), 1, set_once)

    def sequence_state(self, sequence: SequenceObject) -> SequenceState:
        return self.parts.sequences.state(sequence)
