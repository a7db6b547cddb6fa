"""The types of parameters, as far as they follow from the text."""

from pathlib import Path

import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.sql.run.execute import prepare

COUNT = 32_768
PARAMETERS = ",".join(f"${number}" for number in range(1, COUNT + 1))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("delete from t where id in ({})", "integer"),
        ("delete from t where abs(id) in ({})", "integer"),
        ("delete from t where id = coalesce(id, {})", "integer"),
        ("insert into t (id) values ({})", None),
    ],
)
def test_many_parameters_take_as_long_as_their_number(tmp_path: Path, text: str, known: str | None):
    """A step for each pair of them would be a billion steps, and minutes."""
    node = open_node(tmp_path)
    session = Session(node)
    session.execute("create table t (id int primary key)")
    (prepared,) = prepare(text.format(PARAMETERS.replace(",", "),(") if text.startswith("insert") else PARAMETERS))
    types = session.describe(prepared, ()).types
    assert len(types) == COUNT
    if known is not None:
        assert {str(type_.kind) for type_ in types if type_ is not None} == {known}
    session.close()
    node.close()
