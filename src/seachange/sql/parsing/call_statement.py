"""CALL of the procedures that there are: imports, exports on demand, positions of feeds. Their arguments are
constants."""

from __future__ import annotations

from seachange import errors
from seachange.model.relation import RelationName
from seachange.model.statements import AdvanceFeed, ExportTable, ImportTable
from seachange.sql.port.system_columns import SYSTEM_SCHEMA
from seachange.sql.text.names import read_list, read_relation
from seachange.sql.text.tokens import Reader, split_script


def read_call(reader: Reader) -> ImportTable | ExportTable | AdvanceFeed:
    name = read_relation(reader)
    reader.expect_symbol("(")
    given = () if reader.at_symbol(")") else read_list(reader, Reader.string)
    reader.expect_symbol(")")
    if name.schema == SYSTEM_SCHEMA:
        match name.name, given:
            case "import_table", (table, format_, source):
                return ImportTable(parse_relation(table), format_, source)
            case "import_table", (table, format_, source, key):
                return ImportTable(parse_relation(table), format_, source, _names(key))
            case "export_iceberg", (table,):
                return ExportTable(parse_relation(table))
            case "advance_feed", (feed, position):
                return AdvanceFeed(feed, position)
            case _:
                pass
    form = ", ".join(["text"] * len(given))
    raise errors.UndefinedProcedure(name=f"{name}({form})")


def parse_relation(text: str) -> RelationName:
    """A name as it is written in SQL, with or without its schema."""
    reader = _reader(text)
    found = read_relation(reader)
    reader.expect_end()
    return found


def _names(text: str) -> tuple[str, ...]:
    """Columns, separated by commas; none in an empty text."""
    if not text.strip():
        return ()
    reader = _reader(text)
    found = read_list(reader, Reader.name)
    reader.expect_end()
    return found


def _reader(text: str) -> Reader:
    raws = split_script(text)
    if len(raws) != 1:
        raise errors.InvalidName(name=text, detail="it is not a name")
    return Reader(raws[0].words, raws[0].text)
