"""seachange.toml: what a database says for all of its sessions, and settings of the node."""

import re
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.sql.settings.settings import SETTINGS

REPOSITORY = Path(__file__).parents[2]


def write(data: Path, text: str) -> Path:
    path = data / "seachange.toml"
    path.write_text(text)
    return path


def test_it_holds_for_every_session_and_for_the_node(tmp_path: Path):
    write(
        tmp_path,
        """
        lock_timeout = "3s"
        statement_timeout = 60000
        [seachange]
        retention = "2 h"
        node_expiry = "4s"
        drain_timeout = "1s"
        spark.master = "local[2]"
        """,
    )
    node = open_node(tmp_path)
    try:
        session = Session(node)
        for name, shown in (
            ("lock_timeout", "3s"),
            ("statement_timeout", "60000"),
            ("seachange.retention", "2 h"),
            ("seachange.node_expiry", "4s"),
            ("seachange.drain_timeout", "1s"),
            ("seachange.spark.master", "local[2]"),
        ):
            assert list(session.execute(f"show {name}").rows) == [(shown,)]
        assert list(session.execute("select expiry_ms from seachange.nodes").rows) == [(4_000,)]
        assert node.retention.us == 2 * 3_600_000_000
        session.execute("set lock_timeout = 7")
        session.execute("reset lock_timeout")
        assert list(session.execute("show lock_timeout").rows) == [("3s",)]
        session.close()
    finally:
        node.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[seachange]\nretenshun = 1", 'there is no setting "seachange.retenshun"'),
        ("retention = 1", 'there is no setting "retention"'),
        ("transaction_isolation = 'serializable'", "transaction_isolation"),
        ("[seachange]\nretention = '3 moons'", 'setting "seachange.retention" cannot be "3 moons"'),
        ("[seachange]\nnode_expiry = 5", 'setting "seachange.node_expiry" cannot be "5"'),
        ("lock_timeout = [1]", 'setting "lock_timeout" must be'),
        ("lock_timeout = 2026-01-01", 'setting "lock_timeout" must be'),
        ("lock_timeout = = 1", "line 1"),
    ],
)
def test_what_is_wrong_is_named_with_the_file(tmp_path: Path, text: str, said: str):
    path = write(tmp_path, text)
    with pytest.raises(errors.SettingsFileProblem) as caught:
        open_node(tmp_path)
    assert caught.value.sqlstate == "F0000"
    assert str(path) in str(caught.value)
    assert said in str(caught.value)
    # Nothing was made of the folder.
    assert [found.name for found in tmp_path.iterdir()] == ["seachange.toml"]


def test_a_folder_that_is_none_is_not_blamed_on_the_settings(tmp_path: Path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(errors.DataFolderProblem):
        open_node(path)


def test_a_setting_of_the_node_is_not_set_by_a_session(tmp_path: Path):
    node = open_node(tmp_path)
    session = Session(node)
    try:
        with pytest.raises(errors.SettingOfNode) as caught:
            session.execute("set seachange.node_expiry = '1s'")
        assert caught.value.sqlstate == "55P02"
        assert "seachange.toml" in (caught.value.hint or "")
    finally:
        session.close()
        node.close()


def test_a_session_says_how_long_history_is_kept(tmp_path: Path):
    node = open_node(tmp_path)
    try:
        first, second = Session(node), Session(node)
        first.execute("set seachange.retention = '1 min'")
        assert node.retention.us == 60_000_000
        # What is collected cannot be brought back: the longest counts.
        second.execute("set seachange.retention = '2 min'")
        assert node.retention.us == 120_000_000
        second.close()
        assert node.retention.us == 60_000_000
        first.execute("begin; set seachange.retention = '0'; rollback")
        assert node.retention.us == 60_000_000
        first.execute("reset seachange.retention")
        assert node.retention.us == 86_400_000_000
        first.execute("set seachange.retention = 0")
        first.execute("create table t (id int primary key)")
        first.execute("drop table t")
        node.collect_garbage()
        with pytest.raises(errors.UndefinedTable):
            first.execute("undrop table t")
        first.close()
    finally:
        node.close()


def test_the_page_lists_all_settings():
    page = (REPOSITORY / "docs" / "settings.md").read_text()
    found = re.findall(r"^\| `([a-z_.]+)` \| `?([^|`]*?)`? \| (.*) \|$", page, re.MULTILINE)
    listed = {name: (default, description) for name, default, description in found}
    assert listed == {name: (setting.default, setting.description) for name, setting in SETTINGS.items()}
