"""Schema changes whose work is done on Spark, and that end as in-process ones do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.jobs.spark_pipeline import warm_spark
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.pipeline.spark import host
from seachange.pipeline.spark.host import Application
from seachange.pipeline.spark_options import SparkOptions
from seachange.verify.consistency import inspect
from tests.spark.conftest import MASTER
from tests.support.nodes import Place
from tests.support.workers import wait_until

pytestmark = pytest.mark.either_catalog


@pytest.fixture
def node(place: Place) -> Iterator[Node]:
    opened = open_node(place.data, place.catalog)
    yield opened
    opened.close()


def fill(session: Session) -> None:
    session.execute("create table parent (id int primary key)")
    session.execute("insert into parent select i from generate_series(0, 99) g(i)")
    session.execute("create table item (id int primary key, code text, n int, word text)")
    session.execute(
        "insert into item select i, 'c' || (i * 7919 % 6007), i % 100, (i % 50)::text "
        "from generate_series(1, 6000) g(i)"
    )
    session.execute("insert into item values (9001, 'late', 7, '7'), (9002, null, null, null)")
    session.execute("update item set code = 'changed' where id between 10 and 15")
    session.execute("delete from item where id = 77")


def outcome(session: Session, statement: str) -> Any:
    """What a statement answers: nothing, or its error without the rows that it happens to name."""
    try:
        session.execute(statement)
    except errors.Error as problem:
        return problem.sqlstate, str(problem).split(": ")[0]
    return None


CHANGES = [
    "create index by_code on item (code) include (n)",
    "create index by_length on item (length(code) desc, n) where n > 50",
    "create unique index one_word on item (word)",
    "create unique index by_both on item (code, id)",
    "alter table item add constraint positive check (n >= 0)",
    "alter table item add constraint small check (n < 99)",
    "alter table item alter column n set not null",
    "alter table item add constraint of_parent foreign key (n) references parent (id)",
    "alter table item add constraint of_itself foreign key (n) references item (id)",
    "alter table item alter column word type int using word::int",
    "alter table item alter column code type int using code::int",
]
QUESTIONS = [
    "select id from item where code = 'changed' order by id",
    "select count(*), sum(n) from item where length(code) > 3 and n > 50",
    "select sum(word), min(word) from item where word > 20",
]


def test_changes_end_as_they_do_in_process(
    node: Node, application: Application, tmp_path: Path, catalog_kind: str
) -> None:
    # What is done is the same on both catalogs; how its files are announced and attached is not.
    changes, tasks_min = (CHANGES, 8) if catalog_kind == "sqlite" else (CHANGES[:3], 3)
    here = open_node(tmp_path / "here")
    on_spark, in_process = Session(node), Session(here)
    try:
        fill(on_spark)
        fill(in_process)
        on_spark.execute("set seachange.local_rows = 0")
        for statement in changes:
            assert outcome(on_spark, statement) == outcome(in_process, statement), statement
        for question in QUESTIONS if changes is CHANGES else QUESTIONS[:2]:
            assert on_spark.execute(question).rows == in_process.execute(question).rows
        assert not inspect(node).anomalies
        events = [event for (event,) in on_spark.execute("select event from seachange.events").rows]
        assert sum("tasks: " in event and application.id in event for event in events) >= tasks_min
        assert not [e for (e,) in in_process.execute("select event from seachange.events").rows if "Spark" in e]
    finally:
        on_spark.close()
        in_process.close()
        here.close()


def test_the_file_of_the_database_says_it_too_and_a_job_takes_its_settings_along(
    tmp_path: Path, application: Application
) -> None:
    (tmp_path / "seachange.toml").write_text(f'seachange.local_rows = 1000\nseachange.spark.master = "{MASTER}"\n')
    node = open_node(tmp_path)
    session = Session(node)
    try:
        fill(session)
        assert session.execute("show seachange.local_rows").rows == [("1000",)]
        session.execute("set seachange.concurrently = 'async'")
        session.execute("create index concurrently by_code on item (code)")
        session.execute("create index concurrently by_id on parent (id)")
        session.execute("set seachange.local_rows = 10")
        session.execute("create index concurrently by_id_again on parent (id)")
        wait_until(lambda: not node.parts.catalog.jobs(unfinished=True), "the jobs to end")
        spark_jobs = {
            job_id
            for job_id, event in session.execute("select job_id, event from seachange.events").rows
            if application.id in event
        }
        done = session.execute("select id, statement from seachange.jobs where status = 'succeeded' order by id").rows
        assert [statement.split()[3] for id_, statement in done if id_ in spark_jobs] == ["by_code", "by_id_again"]
    finally:
        session.close()
        node.close()


def test_a_worker_may_start_spark_before_there_is_work(
    node: Node, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host of its own, which finds the application that is there."""
    cold = host.SparkHost()
    monkeypatch.setattr(host, "HOST", cold)
    warming = warm_spark(node.parts)
    wait_until(lambda: not warming.is_starting, "Spark to start")
    assert cold.is_warm
    assert warming.problem is None
    with cold.using(SparkOptions(MASTER), lambda: None) as found:
        assert str(found) == str(application)
