"""If Spark is required and unavailable, a change reports that and is reverted; otherwise it runs in-process."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.jobs import spark_pipeline
from seachange.engine.session.session import Session
from tests.support.patience import PATIENCE_S


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    node = open_node(tmp_path / "data")
    made = Session(node)
    made.execute("create table t (id int primary key, v text)")
    made.execute("insert into t values (1, 'a'), (2, 'b')")
    yield made
    made.close()
    node.close()


@pytest.fixture(params=["java", "java home", "pyspark"])
def missing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    match request.param:
        case "java":
            monkeypatch.delenv("JAVA_HOME", raising=False)
            monkeypatch.setenv("PATH", str(tmp_path))
        case "java home":
            monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        case _:
            # What Python takes for a module that cannot be found.
            monkeypatch.setitem(sys.modules, "pyspark", None)
    return str(request.param)


def test_a_change_that_requires_spark_is_reverted(session: Session, missing: str) -> None:
    session.execute("set seachange.local_rows = 0")
    with pytest.raises(errors.NotSupportedError, match="Spark cannot be used") as problem:
        session.execute("create index by_v on t (v)")
    assert problem.value.sqlstate == "0A000"
    assert problem.value.hint is not None
    assert ("JAVA_HOME" if missing.startswith("java") else "pip install") in problem.value.hint
    assert session.execute("select status from seachange.jobs").rows == [("failed",)]
    session.execute("set seachange.local_rows = 100")
    session.execute("create index by_v on t (v)")
    session.execute("alter table t alter column v set not null")


def test_small_work_needs_no_spark(session: Session, missing: str) -> None:
    session.execute("create index by_v on t (v)")
    assert session.execute("select status from seachange.jobs").rows == [("succeeded",)]


def test_work_that_is_worth_spark_is_done_without_it_and_says_so_once(
    session: Session, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if Spark cost nothing: two rows are worth it then, and the change has rows to check and an index to build.
    monkeypatch.setattr(spark_pipeline, "_COLD_SECONDS", 0)
    session.execute("create unique index by_v on t (v)")
    assert session.execute("select status from seachange.jobs").rows == [("succeeded",)]
    told = "select event from seachange.events where event like '%in-process%'"
    ((event,),) = session.execute(told).rows
    assert "Spark cannot be used" in event
    assert missing.partition(" ")[0] in event.lower()


def test_nothing_loads_pyspark_that_does_not_use_it() -> None:
    script = (
        "import sys, tempfile, seachange\n"
        "db = seachange.connect(data=tempfile.mkdtemp())\n"
        "db.autocommit = True\n"
        "db.cursor().execute('create table t (id int primary key, v text)')\n"
        "db.cursor().execute(\"insert into t values (1, 'a')\")\n"
        "db.cursor().execute('create index by_v on t (v)')\n"
        "db.close()\n"
        "sys.exit('pyspark' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE_S)
