"""CREATE FEED and DROP FEED."""

from __future__ import annotations

from seachange.model.statements import CreateFeed, DropFeed
from seachange.sql.text.names import read_list, read_relation
from seachange.sql.text.tokens import Reader, TokenKind


def read_create_feed(reader: Reader) -> CreateFeed:
    name = reader.name()
    reader.expect("for", "table")
    tables = read_list(reader, read_relation)
    position = ""
    if reader.take("from"):
        word = reader.peek()
        is_text = word is not None and word.kind is TokenKind.STRING
        position = reader.string() if is_text else str(reader.integer())
    return CreateFeed(name, tables, position)


def read_drop_feed(reader: Reader) -> DropFeed:
    if_exists = reader.take("if", "exists")
    return DropFeed(reader.name(), if_exists)
