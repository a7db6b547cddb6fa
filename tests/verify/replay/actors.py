"""Those who take the steps of a trace on the engine: transactions on nodes of their own, the job, and compaction."""

from dataclasses import dataclass

from seachange import errors
from seachange.engine.locks.contention import Contention
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.change import elements
from seachange.verify.model.program import Act, Instruction
from tests.verify.replay.cluster import Change, Cluster, Compaction
from tests.verify.replay.translations import Translation
from tests.verify.replay.walks import Step, Subject, Walk

WRITES = ("commit", "write")
# Changes that wait for the transactions which have written to the table. All steps are taken in one thread.
WAITING = ("drop table", "truncate")


@dataclass(slots=True)
class Writer:
    """A transaction. `early`: its statement was sent when it began, else it is when it commits."""

    session: Session
    early: bool
    problem: errors.Error | None = None

    def send(self, statement: str) -> None:
        try:
            self.session.execute(statement)
        except errors.Error as problem:
            self.problem = problem

    def commit(self, statement: str) -> errors.Error | None:
        """What it is refused with, if it is."""
        if not self.early:
            self.send(statement)
        if self.problem is None:
            self.send("commit")
        self.end()
        return self.problem

    def end(self) -> None:
        self.session.close()


class Actors:
    def __init__(
        self, cluster: Cluster, subject: Subject, translation: Translation, walk: Walk, early: int | None
    ) -> None:
        """`early`: whether those with odd or with even numbers write when they begin; None: none does."""
        self.cluster = cluster
        self.change: Change | None = None
        self.compaction: Compaction | None = None
        self.writers: dict[str, Writer] = {}
        self._subject = subject
        self._translation = translation
        self._early = early
        self._begun = 0
        self._writes = {step.who: step.label for step in walk if step.label[0] in WRITES}

    # Transactions.

    def begin(self, who: str) -> None:
        node = self._free_node()
        # Nor does a writer of the model wait for others: nothing is contended.
        node.epoch.contention = Contention(node.parts.clock)
        session = Session(node)
        early = who in self._writes and int(who[1:]) % 2 == self._early and not self._is_waited_for
        self.writers[who] = writer = Writer(session, early)
        # At READ COMMITTED a block would be run again where the model refuses its commit.
        session.execute("begin isolation level repeatable read")
        if early:
            writer.send(self._translation.statement(self._writes[who]))
        else:
            session.execute("select 1")

    @property
    def _is_waited_for(self) -> bool:
        return any(change.startswith(WAITING) for change in self._subject.scenario.changes)

    def _free_node(self) -> Node:
        taken = {id(writer.session.node) for writer in self.writers.values()}
        return next(node for node in self.cluster.writers if id(node) not in taken)

    def write(self, step: Step) -> errors.Error | None:
        return self.writers.pop(step.who).commit(self._translation.statement(step.label))

    def expire(self, who: str) -> None:
        node = self.writers[who].session.node
        node.parts.catalog.end_node(node.epoch.epoch)

    def write_stale(self, who: str) -> errors.Error | None:
        """The model does not say what it writes."""
        return self.writers.pop(who).commit("insert into t (id) values (77)")

    # The job.

    @property
    def is_under_way(self) -> bool:
        return self.change is not None and not self.change.is_over

    @property
    def is_left(self) -> bool:
        """Whether there is another statement to begin."""
        return self._begun < len(self._subject.scenario.changes)

    def start(self) -> None:
        self.change = Change(self.cluster, self._subject.scenario.changes[self._begun])
        self._begun += 1

    def advance(self, instruction: Instruction, crash: bool = False) -> None:
        """One instruction: the first of a change is its statement."""
        if instruction.act is Act.COLLECT:
            self.cluster.collect()
            return
        if not self.is_under_way:
            self.start()
            if instruction.act is Act.PUBLISH:
                return
        assert self.change is not None
        self.change.step(crash)

    def cancel(self) -> None:
        if not self.is_under_way:
            self.start()
        assert self.change is not None
        self.change.cancel()

    # Compaction.

    def fold(self, step: Step) -> None:
        number = step.label[1]
        shape = getattr(self._subject.model, "shape", None)
        index = "t_pkey" if shape is None else self._name(shape.indexes[number].index_id)
        self.compaction = Compaction(self.cluster.workers[0], "t", index)

    def _name(self, index_id: int) -> str:
        names = (e for e in self._subject.program.elements if isinstance(e, elements.IndexName))
        return next(e.name for e in names if e.index_id == index_id)

    def swap(self) -> bool:
        compaction, self.compaction = self.compaction, None
        assert compaction is not None
        return compaction.finish()

    def end(self) -> None:
        """Whatever is still open is given up, and the change runs to its end."""
        for writer in self.writers.values():
            writer.end()
        self.writers.clear()
        if self.compaction is not None:
            self.swap()
        if self.change is not None:
            self.change.run()
            self.change.wake()
