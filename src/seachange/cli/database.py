"""The options by which every command names a database, and its error output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seachange.engine.database.opening import acquire_node, release_node
from seachange.engine.node.node import Node
from seachange.errors import DataFolderOpen, DataFolderProblem, Error
from seachange.runtime.location import DataLocation, find_location
from seachange.runtime.permissions import create_data_folder, is_open_to_others, restrict_process


def add_database_options(parser: argparse.ArgumentParser, creates: bool = True) -> None:
    """`creates`: the command creates a database if there is none."""
    description = "the data folder, or s3://BUCKET/PREFIX" + ("; created if missing" if creates else "")
    parser.add_argument("--data", required=True, metavar="DIR", help=description)
    parser.add_argument(
        "--local",
        metavar="DIR",
        help="the local folder of a database in an object store: cache, temporary files, settings",
    )
    parser.add_argument(
        "--catalog",
        metavar="URL",
        help="sqlite:///PATH (default: inside DIR) or postgresql://...",
    )


def location_of(arguments: argparse.Namespace) -> DataLocation:
    return find_location(arguments.data, arguments.local)


def restrict_access(data: Path, group_access: bool = False) -> None:
    """For a process that serves a folder and does nothing else: creates the folder if there is none, refuses one that
    is open to others, and limits the permissions of all files that the process creates."""
    try:
        create_data_folder(data, group_access)
    except OSError as problem:
        raise DataFolderProblem(path=data, detail=problem.strerror or str(problem)) from problem
    if is_open_to_others(data):
        raise DataFolderOpen(path=data)
    restrict_process(data)


def warn_of_open_folder(data: Path) -> None:
    if is_open_to_others(data):
        problem = DataFolderOpen(path=data)
        print(f"WARNING:  {problem}\nDETAIL:  {problem.detail}\nHINT:  {problem.hint}", file=sys.stderr)


@contextmanager
def open_database(arguments: argparse.Namespace, creates: bool = True) -> Iterator[Node]:
    node = acquire_node(location_of(arguments), arguments.catalog, creates)
    try:
        yield node
    finally:
        release_node(node)


def show_position(statement: str, position: int) -> str:
    """The line of a statement with a mark below the character at that position.

    >>> print(show_position("select a,\\n  nosuch from t", 13))
    LINE 2:   nosuch from t
              ^
    """
    before = statement[: position - 1]
    number, start = before.count("\n") + 1, before.rfind("\n") + 1
    line, _, _ = statement[start:].partition("\n")
    head = f"LINE {number}: "
    mark = "".join(character if character == "\t" else " " for character in line[: len(before) - start])
    return f"{head}{line}\n{' ' * len(head)}{mark}^"


def report_error(error: Error, place: str | None = None) -> None:
    """`place` is the file and line of the statement."""
    head = f"{place}: " if place is not None else ""
    print(f"{head}ERROR:  {error.sqlstate}: {error}", file=sys.stderr)
    if error.statement is not None and error.position is not None:
        print(show_position(error.statement, error.position), file=sys.stderr)
    if error.detail:
        print(f"DETAIL:  {error.detail}", file=sys.stderr)
    if error.hint:
        print(f"HINT:  {error.hint}", file=sys.stderr)
