"""A trace of the model on the engine: after every step both say the same of commits, rows, versions and the job.

**Invariant:** where they may differ is a table (`differences.py`); anything else is a mistake in one of them.
"""

from collections import Counter

from seachange import errors
from seachange.engine.session.session import Session
from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.states import State as SchemaState
from seachange.planner.object_parts import decompose
from seachange.verify.consistency import inspect
from seachange.verify.model.explore import State
from seachange.verify.model.program import Act
from tests.verify.replay.actors import WRITES, Actors
from tests.verify.replay.cluster import Cluster
from tests.verify.replay.differences import (
    INDEX_GONE,
    NO_RAISE,
    NOT_BEGUN,
    NOTHING_TO_FOLD,
    SQLSTATES,
    STALE,
    TABLE_GONE,
    UNTOLD,
    Difference,
)
from tests.verify.replay.tally import Tally
from tests.verify.replay.translations import OnProgress, Translation, has_table, translation_of
from tests.verify.replay.walks import Step, Subject, Walk

# Every so many steps of jobs the worker dies in the middle of a backfill.
CRASH_EVERY = 3


class Cut(Exception):
    """Model and engine part here, as the table of differences says."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(difference.name)
        self.difference = difference


class Diverged(AssertionError):
    """Model and engine do not say the same."""


class Replay:
    def __init__(self, cluster: Cluster, subject: Subject, walk: Walk, number: int, tally: Tally) -> None:
        self._cluster, self._subject, self._walk, self._tally = cluster, subject, walk, tally
        self._number = number
        self._translation: Translation = translation_of(subject)
        # Half of the transactions have written before anything else happens; the others read what their snapshot shows.
        self._actors = Actors(cluster, subject, self._translation, walk, early=number % 2)
        self._turned = False
        self._jobs = 0

    def run(self) -> None:
        prepare(self._cluster, self._subject, self._translation, self._walk)
        self._tally.walks += 1
        taken: list[Step] = []
        try:
            for step in self._walk:
                taken.append(step)
                self._take(step)
                self._tally.steps[_kind(step)] += 1
                self._compare(step)
            self._actors.end()
            self._judge()
        except Cut as cut:
            self._tally.cut[cut.difference.name] += 1
            self._actors.end()
            self._judge()
        except (AssertionError, errors.Error) as problem:
            told = self._subject.model.tell([(s.before, s.label, s.after) for s in taken])
            raise Diverged("\n".join([f"{problem!r}", *told, f"refusal: {taken[-1].refusal}"])) from problem
        finally:
            self._actors.end()

    # Steps.

    def _take(self, step: Step) -> None:
        actors = self._actors
        match step.label[0]:
            case "begin":
                actors.begin(step.who)
            case "commit" | "write":
                self._write(step)
            case "expire":
                actors.expire(step.who)
            case "stale":
                problem = actors.write_stale(step.who)
                assert problem is not None
                assert problem.sqlstate in STALE
            case "job" | "failed" | "recorded" | "looked again":
                self._job(step)
            case "cancel":
                actors.cancel()
                self._turned = True
            case "stop":
                self._stop(step)
            case "turned away":
                if actors.change is not None:
                    actors.change.wake()
            case "fold":
                actors.fold(step)
            case "swap" | "not swapped":
                self._swap(step)
            case other:
                raise AssertionError(other)

    def _write(self, step: Step) -> None:
        problem = self._actors.write(step)
        planned, used = step.label[-2:]
        if step.refusal is not None:
            if problem is None and self._is_unraised(step):
                raise Cut(NO_RAISE)
            assert problem is not None, "the engine commits what the model refuses"
            assert problem.sqlstate in SQLSTATES[step.refusal], f"{problem.sqlstate} {problem}"
            return
        if problem is None:
            return
        if planned != used and self._is_unraised(step):
            raise Cut(NO_RAISE)
        if not has_table(self._subject.program, self._subject.version(step.before)) and problem.sqlstate == "40001":
            raise Cut(TABLE_GONE)
        raise AssertionError(f"the engine refuses what the model commits: {problem.sqlstate} {problem}")

    def _is_unraised(self, step: Step) -> bool:
        """Whether the last raise of the model was one that the engine does not make."""
        path = self._subject.program.path(self._subject.position(step.before))
        return {i.act for _, i in path} <= {Act.RAISE, Act.COLLECT, Act.END}

    def _job(self, step: Step) -> None:
        position = step.label[1]
        code = self._subject.program.instructions
        if code[position].act is Act.RAISE and code[code[position].after].act is Act.COLLECT:
            self._tally.left_out[NO_RAISE.name] += 1
            return
        self._jobs += 1
        self._actors.advance(code[position], (self._jobs + self._number) % CRASH_EVERY == 0)
        self._turned |= step.label[0] in ("failed", "recorded")
        job = self._actors.change.read() if self._actors.change is not None else None
        if job is not None:
            assert (job.failure is not None) == self._turned, job.failure or "the change was not rolled back"

    def _stop(self, step: Step) -> None:
        if self._actors.is_under_way:
            assert self._actors.change is not None
            self._actors.change.halt()
        else:
            self._tally.left_out[NOT_BEGUN.name] += 1

    def _swap(self, step: Step) -> None:
        swapped = self._actors.swap()
        if swapped == (step.label[0] == "swap"):
            return
        shape = getattr(self._subject.model, "shape", None)
        if swapped:
            assert shape is not None
            state = self._subject.program.state(self._subject.version(step.before), shape.indexes[step.label[1]])
            assert state is SchemaState.ABSENT, "a compaction that was overtaken is swapped in"
            self._tally.left_out[INDEX_GONE.name] += 1
        else:
            assert shape is None, "there was something to fold"
            self._tally.left_out[NOTHING_TO_FOLD.name] += 1

    # What both say.

    def _compare(self, step: Step) -> None:
        state = step.after
        if step.label[0] not in ("begin", "expire", "stop"):
            self._compare_versions(state)
            self._look(self._cluster.admin, self._translation.looks_at_head(state), "at the head")
        for slot, who in enumerate(self._names(step)):
            writer = self._actors.writers[who]
            if not writer.early and not self._translation.is_expired(state, slot):
                self._look(writer.session, self._translation.looks_of(state, slot), f"by {who}")

    def _names(self, step: Step) -> list[str]:
        """Who is open after the step, by place: snapshots in the order of their beginning."""
        return sorted(self._actors.writers, key=lambda who: int(who[1:]))

    def _compare_versions(self, state: State) -> None:
        program = self._subject.program
        version = self._subject.version(state)
        states = (_told(e, program.state(version, e)) for e in program.elements if not isinstance(e, UNTOLD))
        model = Counter(each for each in states if each[1] is not SchemaState.ABSENT)
        node = self._cluster.workers[1]
        node.epoch.catch_up()
        tables = node.epoch.schemas.newest.by_id.values()
        engine = Counter(_told(e, s) for t in tables for e, s in decompose(t).items() if not isinstance(e, UNTOLD))
        assert engine == model, f"the engine has {dict(engine - model)}, the model {dict(model - engine)}"

    def _look(self, session: Session, looks: list[OnProgress] | None, where: str) -> None:
        for look in looks or ():
            found = [tuple(None if v is None else str(v) for v in row) for row in session.execute(look.query).rows]
            assert found == look.rows, f"{where}, {look.query!r} finds {found} in the engine, {look.rows} in the model"

    def _judge(self) -> None:
        assert not inspect(self._cluster.workers[0]).anomalies
        assert not self._cluster.workers[0].parts.catalog.jobs(unfinished=True)


def prepare(cluster: Cluster, subject: Subject, translation: Translation, walk: Walk) -> None:
    """The tables of a scenario, and nothing else."""
    for table in ("t", "p"):
        cluster.admin.execute(f"drop table if exists {table}")
    for statement in (*subject.scenario.setup.split("; "), *translation.setup(walk)):
        cluster.admin.execute(statement)


def _told(element: Element, state: SchemaState) -> tuple[str, SchemaState]:
    """Ids differ; a column that has been converted is one like any other."""
    is_column = isinstance(element, elements.ConvertedColumn) and state is SchemaState.PUBLIC
    return elements.ColumnElement.__name__ if is_column else type(element).__name__, state


def _kind(step: Step) -> str:
    if step.label[0] not in WRITES:
        return str(step.label[0])
    what = "commit" if step.refusal is None else "write that is refused"
    return what if step.label[-1] == step.label[-2] else f"{what} (refitted)"
