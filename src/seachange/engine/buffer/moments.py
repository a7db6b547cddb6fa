"""Moments that users name: a sequence number or a time."""

from __future__ import annotations

import datetime as dt

from seachange import errors
from seachange.engine.replica.epoch import EpochState
from seachange.model.ids import Seq
from seachange.sql.settings.setting_checks import parse_as_of

LAYOUT = "seachange.layout"


def read_moment(text: str, epoch: EpochState) -> Seq:
    """The sequence of a moment that has been; raises InvalidSetting for one to come."""
    moment = parse_as_of(text)
    if isinstance(moment, dt.datetime):
        timestamp_us = round(moment.timestamp() * 1_000_000)
        if timestamp_us > epoch.clock.wall_us():
            raise errors.InvalidSetting(name=LAYOUT, value=text)
        return epoch.catalog.sequence_at(timestamp_us)
    assert moment is not None
    if moment > epoch.applied and moment > epoch.catch_up():
        raise errors.InvalidSetting(name=LAYOUT, value=text)
    return moment
