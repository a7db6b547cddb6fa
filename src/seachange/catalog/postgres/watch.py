"""Hearing of commits that carry descriptors, on a connection of its own."""

from __future__ import annotations

import os
import select
from collections.abc import Collection

import psycopg

from seachange.catalog.postgres.connections import client_error, connect, describe

_LISTEN = "LISTEN seachange_descriptors"


class DescriptorWatch:
    """Only `wake` may be called while another thread waits. Of `own`, the server's processes behind this catalog's own
    connections, nothing is told: who commits applies it."""

    def __init__(self, url: str, own: Collection[int]) -> None:
        self._own = own
        self._name = describe(url)
        try:
            self._db = connect(url)
            self._db.execute(_LISTEN)
        except psycopg.Error as problem:
            raise client_error(problem, self._name) from problem
        self._woken, self._waker = os.pipe()
        # What was published before is not told.
        self._is_new = True

    def wait(self, timeout_s: float) -> bool:
        if self._is_new:
            self._is_new = False
            return True
        try:
            readable, _, _ = select.select([self._db.fileno(), self._woken], [], [], timeout_s)
            if self._woken in readable or not readable:
                return False
            # All of them: what is left would be told of later, when it is no news.
            heard = list(self._db.notifies(timeout=0))
            return any(told.pid not in self._own for told in heard)
        except psycopg.Error as problem:
            raise client_error(problem, self._name) from problem

    def wake(self) -> None:
        os.write(self._waker, b"!")

    def close(self) -> None:
        self._db.close()
        os.close(self._woken)
        os.close(self._waker)
