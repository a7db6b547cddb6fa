"""Names of sequences in the text of a query: the arguments of nextval and its siblings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.model.relation import RelationName
from seachange.sql.text.names import read_relation
from seachange.sql.text.tokens import Reader, split_script
from seachange.sql.text.tree import parse_tree

# Numbers of arguments, by name.
ARGUMENTS: Final[dict[str, tuple[int, ...]]] = {"nextval": (1,), "currval": (1,), "lastval": (0,), "setval": (2, 3)}


def find_calls(tree: exp.Expr) -> Iterator[exp.Anonymous]:
    return (node for node in tree.find_all(exp.Anonymous) if node.name.lower() in ARGUMENTS)


def sequences_named(tree: exp.Expr) -> tuple[RelationName, ...]:
    """Sequences that are named by constants."""
    return tuple(dict.fromkeys(read_sequence(constant.name) for constant in _constants(tree)))


def rename_sequences(text: str, names: Mapping[RelationName, str]) -> str:
    """The text of a query with other names for these sequences: the new ones are texts, with quotes where needed."""
    (raw,) = split_script(text)
    found = [(c.meta["start"], c.meta["end"] + 1, read_sequence(c.name)) for c in _constants(parse_tree(raw))]
    for start, end, name in sorted(found, key=lambda place: place[0], reverse=True):
        if name in names:
            text = text[:start] + "'" + names[name].replace("'", "''") + "'" + text[end:]
    return text


def read_sequence(text: str) -> RelationName:
    statements = split_script(text)
    if len(statements) != 1:
        raise errors.SyntaxProblem(detail=f'"{text}" is not the name of a sequence')
    reader = Reader(statements[0].words, statements[0].text)
    name = read_relation(reader)
    reader.expect_end()
    return name


def _constants(tree: exp.Expr) -> Iterator[exp.Literal]:
    for call in find_calls(tree):
        for argument in call.expressions[:1]:
            bare = argument
            while isinstance(bare, exp.Cast):
                bare = bare.this
            if isinstance(bare, exp.Literal) and bare.is_string:
                yield bare
