"""Nodes whose clocks are an hour ahead and an hour behind change a table while the others write to it.

On SQLite the one ahead takes the others for dead, and ends their epochs whenever it looks; on PostgreSQL the server's
clock decides, and no client notices. Either way it costs only repetitions: were a clock to decide whether a commit is
safe, the commits of those who were taken for dead would be without entries in the indexes that were built meanwhile.
"""

from seachange.engine.session.session import Session
from seachange.verify.consistency import check
from tests.cluster.sqlprocess import SqlProcess
from tests.support.nodes import HOUR_S, Place, open_ported_node

OFFSETS_S = (HOUR_S, 0, -HOUR_S)
EXPIRY_MS = 2_000
ATTEMPTS = 20


def insist(process: SqlProcess, *statements: str) -> None:
    """As a client does: what was refused with 40001 is repeated, and nothing else is refused."""
    for _ in range(ATTEMPTS):
        answers = [process.run(statement) for statement in ("begin", *statements, "commit")]
        if "40001" not in answers and "72000" not in answers:
            assert not [answer for answer in answers if isinstance(answer, str)], answers
            return
        process.run("rollback")
    raise AssertionError("refused for ever")


def test_each_changes_the_table_under_the_open_transactions_of_the_others(place: Place):
    node = open_ported_node(place, "looks on")
    node.jobs.paused = True
    session = Session(node)
    session.execute("create table item (id int primary key, code text, n int)")
    session.execute("insert into item select i, 'code ' || i, i from generate_series(1, 100) g(i)")
    executor = [SqlProcess(place, EXPIRY_MS, clock_offset_s=offset) for offset in OFFSETS_S]
    try:
        written: list[int] = []
        for turn, changer in enumerate(executor):
            others = [process for process in executor if process is not changer]
            for number, process in enumerate(others):
                process.run("begin")
                process.run(f"insert into item values ({1_000 + 10 * turn + number}, 'early {turn}.{number}', 0)")
            assert changer.run("set seachange.drain_timeout = '200ms'") == []
            assert changer.run(f"create unique index item_code_{turn} on item (code)") in ([], "40001")
            for number, process in enumerate(others):
                # Refused, or made to fit.
                answer = process.run("commit")
                assert answer in ([], "40001"), answer
                if answer == []:
                    written.append(1_000 + 10 * turn + number)
                insist(process, f"insert into item values ({2_000 + 10 * turn + number}, 'late {turn}.{number}', 0)")
                written.append(2_000 + 10 * turn + number)
    finally:
        for process in executor:
            process.__exit__()
    node.jobs.paused = False
    found = session.execute("select id from item where id >= 1000 order by id").rows
    assert [id_ for (id_,) in found] == sorted(written)
    session.close()
    assert not check(node)
    node.close()
