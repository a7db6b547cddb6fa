"""CREATE FEED, DROP FEED, and the acknowledgement of a feed's consumer.

They are effective at once, in the catalog: a position is no part of a transaction.
"""

from __future__ import annotations

import datetime as dt

from seachange import errors
from seachange.engine.feed.feed_lag import find_feed
from seachange.engine.transaction.transaction import Transaction
from seachange.model.feeds import FeedRecord
from seachange.model.ids import Seq
from seachange.model.schema.descriptor import Table
from seachange.model.statements import AdvanceFeed, CreateFeed, DropFeed, FeedStatement
from seachange.sql.port.result import Result
from seachange.sql.settings.setting_checks import parse_as_of

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def change_feed(statement: FeedStatement, transaction: Transaction, notices: list[str]) -> Result:
    match statement:
        case CreateFeed():
            _create(statement, transaction)
            return Result("CREATE FEED")
        case DropFeed(name, if_exists):
            if if_exists and _known(name, transaction) is None:
                notices.append(f'feed "{name}" does not exist, skipping')
            else:
                record = _own(name, transaction)
                transaction.state.parts.catalog.drop_feed(record.database, name)
            return Result("DROP FEED")
        case AdvanceFeed(name, position):
            record = _own(name, transaction)
            if record.ended:
                raise errors.FeedEnded(name=name, reason=record.ended)
            reached = _sequence(position, transaction)
            transaction.state.parts.catalog.advance_feed(record.database, name, reached)
            return Result("CALL")


def _create(statement: CreateFeed, transaction: Transaction) -> None:
    state, tables = transaction.state, []
    for name in statement.tables:
        found = transaction.port.names.relation(name.schema, name.name)
        if not isinstance(found, Table):
            raise errors.WrongObjectType(name=found.name, kind="table")
        state.rights.check_access(found, "SELECT")
        tables.append(found.id)
    database, now_us = state.statement.session.database, state.parts.clock.wall_us()
    position = _sequence(statement.position, transaction)
    owner = state.statement.session.user
    record = FeedRecord(statement.name, database, owner, tuple(dict.fromkeys(tables)), position, now_us)
    if not state.parts.catalog.create_feed(record):
        raise errors.DuplicateObject(kind="feed", name=statement.name)


def _known(name: str, transaction: Transaction) -> FeedRecord | None:
    return find_feed(transaction.state.parts.catalog, transaction.state.statement.session.database, name)


def _own(name: str, transaction: Transaction) -> FeedRecord:
    record, actor = _known(name, transaction), transaction.state.rights.actor
    if record is None:
        raise errors.UndefinedObject(kind="feed", name=name)
    if not actor.superuser and record.owner not in actor.roles:
        raise errors.InsufficientPrivilege(detail=f"must be owner of feed {name}")
    return record


def _sequence(text: str, transaction: Transaction) -> Seq:
    """A position that has been reached: no later one than the newest commit."""
    head = transaction.state.snapshot.seq
    try:
        position = parse_as_of(text)
    except ValueError:
        raise errors.InvalidParameterValue(
            detail=f"the position of a feed is neither a sequence number nor a moment: {text}"
        ) from None
    if isinstance(position, dt.datetime):
        return transaction.state.parts.catalog.sequence_at((position - _EPOCH) // _MICROSECOND)
    return head if position is None else min(position, head)
