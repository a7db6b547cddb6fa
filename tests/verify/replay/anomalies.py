"""A counter-example of the model on an engine, whole or without a safeguard: what goes wrong, if anything does.

Here nothing is compared with the model, whose safeguard is missing: after every step the engine must be consistent in
itself, for the head and for every open transaction.
"""

from seachange import errors
from seachange.engine.session.session import Session
from seachange.verify.consistency import inspect
from seachange.verify.model.program import Act
from tests.verify.replay.actors import Actors
from tests.verify.replay.cluster import Cluster
from tests.verify.replay.replay import prepare
from tests.verify.replay.tally import Tally
from tests.verify.replay.translations import FIXED, Rows, translation_of
from tests.verify.replay.walks import Step, Subject, Walk

# A commit that the model only says to be refused.
ANY_WRITE = f"update t set a = '20' where id < {FIXED}"


class Trial:
    """One counter-example."""

    def __init__(self, cluster: Cluster, subject: Subject, walk: Walk, tally: Tally) -> None:
        self._cluster, self._subject, self._walk, self._tally = cluster, subject, walk, tally
        self._translation = translation_of(subject)
        # Every transaction writes when it commits, and reads meanwhile.
        self._actors = Actors(cluster, subject, self._translation, walk, early=None)
        self.refused: list[errors.Error] = []

    def run(self) -> list[str]:
        """What is wrong after the first step after which something is, or at the end."""
        prepare(self._cluster, self._subject, self._translation, self._walk)
        self._tally.walks += 1
        try:
            for step in self._walk:
                self._take(step)
                self._tally.steps[str(step.label[0])] += 1
                if problems := self._problems():
                    return problems
            self._actors.end()
            return self._problems()
        finally:
            self._actors.end()

    def _take(self, step: Step) -> None:
        actors = self._actors
        match step.label[0]:
            case "begin":
                actors.begin(step.who)
            case "commit" | "write":
                self._note(actors.write(step))
            case "refused":
                self._note(actors.writers.pop(step.who).commit(ANY_WRITE))
            case "register":
                # Here a transaction is registered when it begins.
                pass
            case "job" | "looked again":
                self._job(step)
            case "cancel":
                actors.cancel()
            case "stop":
                assert actors.change is not None
                actors.change.halt()
            case "zombie":
                assert actors.change is not None
                actors.change.wake()
            case "fold":
                actors.fold(step)
            case "swap":
                actors.swap()
            case "forget":
                self._cluster.collect()
            case other:
                raise AssertionError(other)

    def _note(self, problem: errors.Error | None) -> None:
        if problem is not None:
            self.refused.append(problem)

    def _job(self, step: Step) -> None:
        """The whole engine may be done with a shorter program; rows are read as of the last record without a raise."""
        instruction = self._subject.program.instructions[step.label[1]]
        if instruction.act is Act.COLLECT:
            self._cluster.collect()
        elif instruction.act is not Act.SNAPSHOT and (self._actors.is_under_way or self._actors.is_left):
            self._actors.advance(instruction)

    # What must hold.

    def _problems(self) -> list[str]:
        found = [str(anomaly) for anomaly in inspect(self._cluster.workers[0]).anomalies]
        for who, writer in self._actors.writers.items():
            if isinstance(self._translation, Rows):
                found += [f"{who}: {problem}" for problem in self._disagreements(writer.session)]
        return found

    def _disagreements(self, session: Session) -> list[str]:
        """Rows that a look-up finds otherwise than a scan."""
        scanned = session.execute(f"select id, a from t where id < {FIXED}").rows
        problems = []
        for value in (10, 20):
            found = sorted(id_ for (id_,) in session.execute(f"select id from t where a = '{value}'").rows)
            expected = sorted(id_ for id_, a in scanned if str(a) == str(value))
            if found != expected:
                problems.append(f"where a = {value}: {found}, not {expected}")
        return problems
