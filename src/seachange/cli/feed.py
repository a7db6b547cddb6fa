"""Write the changes of a feed's tables to the output, one JSON document a line, and move the feed on.

The position moves after the output was flushed: what was written when the program is killed may be written again, and
nothing is lost. It moves from commit to commit, so a commit is written again as a whole."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from seachange.cli.database import add_database_options, open_database, report_error
from seachange.engine.feed.feed_lag import find_feed
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.engine.transaction.transaction import Transaction
from seachange.errors import Error, FeedEnded, UndefinedObject
from seachange.model.feeds import FeedRecord
from seachange.model.ids import Seq

EXAMPLES = """examples:
  seachange feed orders_feed --data shop
  seachange feed orders_feed --data shop --format debezium --follow
"""
# Commits between two positions.
_STEP = 1_000
_POLL_SECONDS = 0.1
_NOTHING = "null"
_DEBEZIUM = {"insert": "c", "update": "u", "delete": "d"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the feed, which CREATE FEED has made")
    add_database_options(parser, creates=False)
    parser.add_argument("--database", default="seachange", help="the database of the feed (default: seachange)")
    parser.add_argument("--format", choices=list(_FORMATS), default="json", help="the form of a change (default: json)")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--until", type=int, metavar="SEQ", help="end after this commit (default: the newest one)")
    end.add_argument("--follow", action="store_true", help="wait for further commits instead of ending")


def run(arguments: argparse.Namespace) -> int:
    try:
        with (
            open_database(arguments, creates=False) as node,
            closing(Session(node, database=arguments.database)) as own,
        ):
            _write(node, own, arguments)
    except Error as error:
        report_error(error)
        return 1
    return 0


def _write(node: Node, session: Session, arguments: argparse.Namespace) -> None:
    show = _FORMATS[arguments.format]
    pause = threading.Event()
    while True:
        feed = _find(node, arguments)
        head = node.in_epoch(lambda epoch: epoch.catch_up())
        until = head if arguments.until is None else min(head, Seq(arguments.until))
        for position in range(feed.position, until, _STEP):
            reached = Seq(min(position + _STEP, until))
            for event in _read(session, feed, Seq(position), reached):
                sys.stdout.write(show(event, feed.database) + "\n")
            sys.stdout.flush()
            node.parts.catalog.advance_feed(feed.database, feed.name, reached)
        if not arguments.follow:
            return
        pause.wait(_POLL_SECONDS)


def _find(node: Node, arguments: argparse.Namespace) -> FeedRecord:
    found = find_feed(node.parts.catalog, arguments.database, arguments.name)
    if found is None:
        raise UndefinedObject(kind="feed", name=arguments.name)
    if found.ended:
        raise FeedEnded(name=found.name, reason=found.ended)
    return found


def _read(session: Session, feed: FeedRecord, since: Seq, until: Seq) -> Iterator[dict[str, Any]]:
    """The transaction is open while the changes are written: it holds what they are read from."""
    session.begin()
    try:

        def read(transaction: Transaction) -> Iterator[Any]:
            return transaction.port.feeds.read(feed.tables, since, until).batches()

        for batch in session.in_transaction(read):
            yield from batch.to_pylist()
    finally:
        session.rollback()


def _show_json(event: dict[str, Any], _: str) -> str:
    named = {name: json.dumps(event[name], ensure_ascii=False) for name in ("seq", "ordinal", "relation", "op")}
    moment = {"committed_at": json.dumps(event["committed_at"].isoformat())}
    return _object({**named, **moment, **{name: event[name] for name in ("before", "after", "schema")}})


def _show_debezium(event: dict[str, Any], database: str) -> str:
    """The envelope of Debezium's change events, without the schema of the message."""
    schema, _, table = event["relation"].partition(".")
    moment_ms = round(event["committed_at"].timestamp() * 1_000)
    named = {"connector": "seachange", "db": database, "schema": schema, "table": table, "ts_ms": moment_ms}
    source = json.dumps({**named, "lsn": event["seq"], "sequence": event["ordinal"]}, ensure_ascii=False)
    ends = {"source": source, "ts_ms": str(moment_ms)}
    if event["op"] == "schema":
        kind = "DROP" if event["schema"] == _NOTHING else "ALTER"
        id_ = json.dumps(event["relation"], ensure_ascii=False)
        return _object(
            {**ends, "tableChanges": f"[{_object({'type': json.dumps(kind), 'id': id_, 'table': event['schema']})}]"}
        )
    op = json.dumps(_DEBEZIUM[event["op"]])
    return _object({"before": event["before"], "after": event["after"], "op": op, **ends})


def _object(members: dict[str, str | None]) -> str:
    """Of the texts of documents, so that numbers keep all of their digits."""
    return "{" + ", ".join(f'"{name}": {text or _NOTHING}' for name, text in members.items()) + "}"


_FORMATS: dict[str, Callable[[dict[str, Any], str], str]] = {"json": _show_json, "debezium": _show_debezium}
