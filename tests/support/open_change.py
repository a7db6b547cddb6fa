"""The schema change of a transaction block that stays open: its stages are published one by one, without the block."""

from dataclasses import replace

from seachange.engine.buffer.declarations import AddedConstraint
from seachange.engine.buffer.pending_schema import descriptor_change
from seachange.engine.constraints.uncommitted import key_of
from seachange.engine.node.node import Node
from seachange.engine.transaction.transaction import Transaction
from seachange.model.change.elements import descriptor_of
from seachange.model.change.ops import BackfillIndexes, OpType, SetState
from seachange.model.ids import CommitId, DescriptorId, Seq
from seachange.model.log import CommitRequest, Committed, GenerationChange, VersionRaise
from seachange.model.schema.objects import Descriptor
from seachange.model.states import State
from seachange.planner.known_schema import KnownSchema, change_descriptor
from seachange.planner.plan import plan_statements
from seachange.planner.stages import Stage
from seachange.sql.parsing.parse import parse_script


class OpenChange:
    """Indexes are built of tables that have no rows at that moment; nothing is validated."""

    def __init__(self, node: Node, sql: str) -> None:
        self.node = node
        ids = iter(node.parts.catalog.allocate_ids(20))
        known = KnownSchema(self._newest())
        self.plan = plan_statements(known, parse_script(sql), ids, in_block=True)  # type: ignore[arg-type]
        self.left = [stage for stage in self.plan.stages if stage.type is not OpType.COLLECTION]
        # The last raise: rows are validated as of it.
        self.raised = Seq(0)

    def _newest(self) -> dict[DescriptorId, Descriptor]:
        self.node.epoch.catch_up()
        schema = self.node.epoch.schemas.newest
        return {**schema.by_id, **schema.objects}

    def _commit(self, request: CommitRequest) -> Seq:
        (outcome,) = self.node.parts.catalog.commit(self.node.epoch.epoch, [request])
        assert isinstance(outcome, Committed), outcome
        self.node.epoch.catch_up()
        return outcome.seq

    def _blank(self) -> CommitRequest:
        head = self.node.epoch.catch_up()
        return CommitRequest(CommitId(self.node.parts.entropy.token(16)), validated=head, oldest=head)

    def to_first_state(self) -> None:
        """Publishes the first state, raises `min_version`, and builds the index."""
        self._publish(self.left.pop(0))
        while self.left[0].type is not OpType.MUTATION:
            self._publish(self.left.pop(0))

    def to_commit(self) -> None:
        """Publishes every stage before the COMMIT of the block."""
        while not self.left[0].is_publication:
            self._publish(self.left.pop(0))

    def _mutations(self, stage: Stage) -> list[SetState]:
        return [op for op in self.plan.ops(stage) if isinstance(op, SetState)]

    def _publish(self, stage: Stage) -> None:
        newest = self._newest()
        if stage.raises:
            raises = tuple(VersionRaise(id_, newest[id_].version) for id_ in stage.raises)
            self.raised = self._commit(replace(self._blank(), raises=raises))
        by_id: dict[DescriptorId, list[SetState]] = {}
        for mutation in self._mutations(stage):
            by_id.setdefault(descriptor_of(mutation.element), []).append(mutation)
        changes = tuple(
            descriptor_change(id_, newest.get(id_), change_descriptor(newest.get(id_), ops))
            for id_, ops in by_id.items()
        )
        if changes:
            self._commit(replace(self._blank(), descriptors=changes))
        for op in self.plan.ops(stage):
            if isinstance(op, BackfillIndexes):
                swaps = tuple(GenerationChange(id_, None, self.raised, ()) for id_ in op.index_ids)
                self._commit(replace(self._blank(), generations=swaps))

    def commit(self) -> None:
        """The COMMIT of the block, which has no rows of its own."""
        (stage,) = self.left
        newest = self._newest()
        txn: Transaction = self.node.begin()
        for id_ in stage.publishes:
            ops = [op for op in self._mutations(stage) if descriptor_of(op.element) == id_]
            txn.definitions.publish(newest[id_], change_descriptor(newest[id_], ops))
            for op in ops:
                key = key_of(op.element) if op.state is State.PUBLIC else None
                if key is not None:
                    txn.state.declared.changed[key] = self.raised
                    message = f"{type(op.element).__name__} is violated by"
                    txn.state.declared.constraints[key] = AddedConstraint(op.element, message, only_until_commit=False)
        txn.definitions.fence(self.plan.change.fenced)
        txn.commit()
