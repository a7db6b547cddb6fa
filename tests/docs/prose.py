"""Finds markers of obscure prose in Markdown pages and in the docstrings, comments and strings of Python files.

The markers are words and phrases for which plain technical English has a better one: they name no actor, or they
describe a thing that has a standard term.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

MARKERS = (
    "whoever",
    "nobody",
    "somebody",
    "is told",
    "told of",
    "its kin",
    "stands for itself",
    "taken back",
    "take back",
    "heed",
    "anew",
    "of no account",
    "hears of",
)
_ANY = "|".join(MARKERS)
_MARKER = re.compile(rf"\b(?:{_ANY})\b".replace(" ", r"\s+"), re.IGNORECASE)
# A phrase may be split between two lines of a comment.
_MARKER_IN_CODE = re.compile(rf"\b(?:{_ANY})\b".replace(" ", r"[\s#]+"), re.IGNORECASE)
_TEXT = frozenset({tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)})


def in_markdown(text: str) -> list[str]:
    return [" ".join(found[0].lower().split()) for found in _MARKER.finditer(text)]


def in_python(source: str) -> list[str]:
    """Identifiers are not prose; most files have no marker at all, so only the others are tokenized."""
    if not _MARKER_IN_CODE.search(source):
        return []
    return [marker for text in _texts(source) for marker in in_markdown(text)]


def _texts(source: str) -> Iterator[str]:
    """Each string, and each run of comments as one text."""
    comments: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments.append(token.string.lstrip("#"))
        elif token.type != tokenize.NL:
            yield " ".join(comments)
            comments = []
            if token.type in _TEXT:
                yield token.string
    yield " ".join(comments)


def python_files(root: Path, folders: tuple[str, ...]) -> list[Path]:
    return sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
