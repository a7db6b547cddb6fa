"""docs/views.md describes every view of the schema `seachange` and every column with its type."""

import re

from seachange.sql.port.system_columns import SYSTEM_VIEWS
from tests.docs.pages import ROOT

_ROW = re.compile(r"^\| `(?P<column>\w+)` \| (?P<type>[\w ]+) \| (?P<text>.+) \|$", re.MULTILINE)


def test_the_page_describes_every_column():
    _, *sections = (ROOT / "docs" / "views.md").read_text().split("\n## ")
    described = {
        section.partition("\n")[0]: [(found["column"], found["type"]) for found in _ROW.finditer(section)]
        for section in sections
    }
    assert described == {
        view: [(column, str(type_)) for column, type_ in columns.items()] for view, columns in SYSTEM_VIEWS.items()
    }
