"""Transactions in flight while a table is changed: begun at one moment, committed at that one or at one of the next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.ids import TableId
from tests.schemachange.case import Case
from tests.schemachange.world import PARENTS, ROWS
from tests.schemachange.writers import KINDS, Keys, Kind, Pool, Target, target_of


@dataclass(frozen=True, slots=True)
class Career:
    """So many moments after its begin a transaction writes, and commits; `repeatable`: at one snapshot."""

    writes: int
    commits: int
    repeatable: bool = False


CAREERS = (
    Career(0, 1),
    Career(0, 2),
    Career(0, 0),
    Career(1, 2, repeatable=True),
    Career(0, 1, repeatable=True),
)
# Dense traffic needs so many times the rows.
DENSE = 6
ENDED_BY = max(career.commits for career in CAREERS)


@dataclass(frozen=True, slots=True)
class Refusal:
    kind: str
    career: Career
    begun: int
    sqlstate: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind} begun at {self.begun}, {self.career}: {self.sqlstate} {self.message}"


@dataclass(slots=True)
class Flight:
    kind: Kind
    session: Session
    target: Target
    twin: Target
    keys: Keys
    begun: int
    career: Career
    has_written: bool = False

    def begin(self) -> None:
        # A session that waits for another would wait forever: all run in one thread.
        self.session.execute("set lock_timeout = '1s'")
        self.session.execute("begin isolation level repeatable read" if self.career.repeatable else "begin")
        if self.career.writes:
            # From here on it has its snapshot.
            self.session.execute(f"select count(*) from {self.target.table}")

    def write(self) -> None:
        for target in (self.target,) if self.kind.shared else (self.target, self.twin):
            self.kind.write(self.session, target, self.keys)
        self.has_written = True

    def commit(self) -> None:
        self.session.execute("commit")


class Traffic:
    """`dense`: writers of every kind with every career at every moment; else kinds and careers take turns."""

    def __init__(self, nodes: Sequence[Node], case: Case, table_id: TableId, dense: bool, crowd: int) -> None:
        self._nodes = nodes
        self._case = case
        self._table_id = table_id
        self._dense = dense
        self._pool = Pool(crowd * ROWS, crowd * PARENTS)
        self._begun = 0
        self._kinds = [kind for kind in KINDS if kind.name not in case.without]
        self.flights: list[Flight] = []
        self.moment = -1
        self.committed = 0
        self.refusals: list[Refusal] = []

    def pass_moment(self, begins: bool = True) -> None:
        self.moment += 1
        self._end_locks()
        new = list(self._new()) if begins else []
        for locks_rows in (False, True):
            for flight in [flight for flight in self.flights if flight.kind.locks_rows == locks_rows]:
                self._continue(flight)
            for kind, career in new:
                if kind.locks_rows == locks_rows:
                    self._begin(kind, career)

    def end(self) -> None:
        """Lets all that are in flight arrive."""
        for _ in range(ENDED_BY):
            self.pass_moment(begins=False)
        assert not self.flights

    def _new(self) -> Iterator[tuple[Kind, Career]]:
        for number, kind in enumerate(self._kinds):
            if self._dense:
                yield from ((kind, career) for career in CAREERS)
            elif (number + self.moment) % kind.rests == 0:
                yield kind, CAREERS[(self.moment + number) % len(CAREERS)]

    def _begin(self, kind: Kind, career: Career) -> None:
        node = self._nodes[self._begun % len(self._nodes)]
        self._begun += 1
        node.epoch.catch_up()
        schema = node.epoch.schemas.newest
        table = schema.by_id.get(self._table_id)
        if table is None:
            return
        target = target_of(table, self._case.renames)
        twin = target_of(schema.within().by_name["public", "w"], {})
        if not (kind.fits(target) and kind.fits(twin)):
            return
        flight = Flight(kind, Session(node), target, twin, self._pool.draw(kind), self.moment, career)
        self.flights.append(flight)
        if self._attempt(flight, flight.begin):
            self._continue(flight)

    def end_writers(self) -> None:
        for flight in [flight for flight in self.flights if flight.has_written]:
            self._end(flight)

    def _end_locks(self) -> None:
        """All are in one thread, so that a transaction for whose end others wait ends before they write or commit: it
        is in flight for one step of the change. The others of a moment come before it."""
        for flight in [flight for flight in self.flights if flight.kind.locks_rows and flight.has_written]:
            self._end(flight)

    def _continue(self, flight: Flight) -> None:
        age = self.moment - flight.begun
        if flight.kind.locks_rows and age == flight.career.writes:
            self._end_locks()
        if age == flight.career.writes and not self._attempt(flight, flight.write):
            return
        if age == flight.career.commits:
            self._end(flight)

    def _end(self, flight: Flight) -> None:
        if self._attempt(flight, flight.commit):
            self.committed += 1
            self._forget(flight)

    def _attempt(self, flight: Flight, work: object) -> bool:
        assert callable(work)
        try:
            work()
        except errors.Error as problem:
            refusal = Refusal(flight.kind.name, flight.career, flight.begun, problem.sqlstate, str(problem))
            self.refusals.append(refusal)
            self._forget(flight)
            return False
        return True

    def _forget(self, flight: Flight) -> None:
        flight.session.close()
        self.flights.remove(flight)
