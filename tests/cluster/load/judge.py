"""What must hold of the database when the load is over, as a list of what does not."""

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check
from tests.cluster.load.log import Entry
from tests.cluster.load.schema import ACCOUNTS, BALANCE, TABLES
from tests.support.workers import wait_until

# A writer may be refused: by what is enforced, by others who were faster, by a column that went.
REFUSALS = frozenset(["40001", "40P01"])
CONSTRAINT = re.compile(r'"(may_\w+)"|column "?note"?')
# A column that is not there, or is made from others.
GONE = frozenset(["42703", "428C9"])


class Ledger:
    """What the processes wrote down, taken together."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.begun: set[int] = set()
        self.announced: dict[int, Entry] = {}
        self.committed: set[int] = set()
        self.refused: dict[int, Entry] = {}
        self.changes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.problems: list[str] = []
        for entry in entries:
            getattr(self, f"_{entry['what']}")(entry)

    def _begin(self, entry: Entry) -> None:
        self.begun.add(entry["marker"])

    def _commits(self, entry: Entry) -> None:
        self.announced[entry["marker"]] = entry

    def _committed(self, entry: Entry) -> None:
        self.committed.add(entry["marker"])

    def _refused(self, entry: Entry) -> None:
        self.refused[entry["marker"]] = entry
        self._judge_refusal(entry)

    def _forgiven(self, entry: Entry) -> None:
        self._judge_refusal(entry)

    def _wrong(self, entry: Entry) -> None:
        self.problems.append(f"transaction {entry['marker']} read {entry['message']}")

    def _broken(self, entry: Entry) -> None:
        self.problems.append(entry["message"])

    def _ended(self, entry: Entry) -> None:
        pass

    def _ddl(self, entry: Entry) -> None:
        kind = " ".join(entry["sql"].split()[:2])
        self.changes[f"{kind} -> {entry['sqlstate']}"] += 1
        self._judge_change(entry)

    def _server_context(self, entry: Entry) -> None:
        self._judge_change(entry)

    def _judge_change(self, entry: Entry) -> None:
        if not entry["allowed"]:
            self.problems.append(f"{entry.get('sql', 'housekeeping')}: {entry['sqlstate']}: {entry['message']}")

    def _judge_refusal(self, entry: Entry) -> None:
        state, message = entry["sqlstate"], entry["message"]
        if state == errors.QueryCanceled.sqlstate and "a change of mind" in message:
            return
        self.reasons[f"{state} {re.sub(r'[0-9]+', 'N', message)[:110]}"] += 1
        by_constraint = state.startswith("23") and CONSTRAINT.search(message)
        by_column = state in GONE and entry["place"] == "set_extra"
        if not (state in REFUSALS or by_constraint or by_column):
            self.problems.append(f"a writer was refused in {entry['place']}: {state}: {message}")

    def fold(self, happened: set[int]) -> tuple[dict[int, tuple[str, int]], Counter[int]]:
        """The rows and the counters that follow from the transactions that happened."""
        rows: dict[int, tuple[str, int]] = {}
        counters: Counter[int] = Counter()
        for marker in sorted(happened & self.announced.keys()):
            entry = self.announced[marker]
            for id_, code, qty in entry["effects"]:
                if code is None:
                    rows.pop(id_, None)
                else:
                    rows[id_] = (code, qty)
            counters.update({int(key): count for key, count in entry["increments"].items()})
        return rows, counters


def resume_jobs(session: Session) -> bool:
    """Lets every job go on that was paused; whether all are over."""
    rows = session.execute(
        "select id, status from seachange.jobs where status not in ('succeeded', 'failed', 'canceled')"
    ).rows
    for id_, status in rows:
        if status == "paused":
            with suppress(errors.NotInPrerequisiteState):
                session.execute(f"select seachange.resume_job({id_})")
    return not rows


def judge(node: Node, ledger: Ledger) -> list[str]:
    session = Session(node)
    try:
        wait_until(lambda: resume_jobs(session), "every job to end")
        anomalies = [f"the checker finds: {anomaly}" for anomaly in check(node)]
        return [*ledger.problems, *judge_rows(session, ledger), *judge_jobs(session), *anomalies]
    finally:
        session.close()


def judge_rows(session: Session, ledger: Ledger) -> list[str]:
    journal = Counter(marker for (marker,) in session.execute("select marker from journal").rows)
    happened = set(journal)
    problems = [
        *_some("committed, and not there", ledger.committed - happened),
        *_some("refused, and there", ledger.refused.keys() & happened),
        *_some("there twice", {marker for marker, count in journal.items() if count > 1}),
        *_some("there, and never begun", happened - ledger.begun),
    ]
    rows, counters = ledger.fold(happened)
    held = {
        id_: (code, qty)
        for name in TABLES
        for id_, code, qty in session.execute(f"select id, code, qty from {name}").rows
    }
    for name in TABLES:
        wrong = session.execute(f"select id, code, size::text from {name} where size::text <> split_part(code, '.', 2)")
        problems += [f"the size of row {row} is wrong" for row in wrong.rows[:5]]
    different = {id_ for id_ in {*rows, *held} if rows.get(id_) != held.get(id_)}
    problems += [f"row {id_} is {held.get(id_)} instead of {rows.get(id_)}" for id_ in sorted(different)[:5]]
    found: Counter[int] = Counter(dict(session.execute("select id, n from counter").rows))
    if found != counters:
        problems.append(f"the counters are {found} instead of {counters}")
    total = session.execute("select count(*), sum(balance)::bigint from account").rows[0]
    if total != (ACCOUNTS, ACCOUNTS * BALANCE):
        problems.append(f"the accounts have {total}")
    scratched = {marker for (marker,) in session.execute("select marker from scratch").rows}
    return [*problems, *_some("in scratch, and never committed", scratched - happened)]


def judge_jobs(session: Session) -> list[str]:
    """Internal errors are in the records and in the events, even if no client saw them."""
    states = session.execute("select id, statement, sqlstate, error from seachange.jobs").rows
    bugs = [f"job {id_}: {sql}: {error}" for id_, sql, state, error in states if state and state.startswith("XX")]
    told = [text for (text,) in session.execute("select event from seachange.events").rows if "XX000" in text]
    return [*bugs, *told]


def _some(what: str, markers: set[int]) -> list[str]:
    return [f"{len(markers)} transactions {what}: {sorted(markers)[:5]}"] if markers else []
