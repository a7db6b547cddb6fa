"""Notification of commits with descriptors, on a connection of its own."""

from __future__ import annotations

import os
import select
from collections.abc import Collection

import psycopg

from seachange.catalog.postgres.connections import client_error, connect, describe

_LISTEN = "LISTEN seachange_descriptors"


class DescriptorWatch:
    """Only `wake` may be called while another thread waits. Notifications of `own`, the backend processes of this
    catalog's connections, are ignored: a node applies its own commits."""

    def __init__(self, url: str, own: Collection[int]) -> None:
        self._own = own
        self._name = describe(url)
        try:
            self._db = connect(url)
            self._db.execute(_LISTEN)
        except psycopg.Error as problem:
            raise client_error(problem, self._name) from problem
        self._woken, self._waker = os.pipe()
        # There are no notifications of earlier publications.
        self._is_new = True

    def wait(self, timeout_s: float) -> bool:
        if self._is_new:
            self._is_new = False
            return True
        try:
            readable, _, _ = select.select([self._db.fileno(), self._woken], [], [], timeout_s)
            if self._woken in readable or not readable:
                return False
            # All of them: a notification that is left would be reported later as new.
            notifications = list(self._db.notifies(timeout=0))
            return any(notification.pid not in self._own for notification in notifications)
        except psycopg.Error as problem:
            raise client_error(problem, self._name) from problem

    def wake(self) -> None:
        os.write(self._waker, b"!")

    def close(self) -> None:
        self._db.close()
        os.close(self._woken)
        os.close(self._waker)
