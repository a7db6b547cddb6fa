"""Hearing of commits that carry descriptors, on a connection of its own."""

from __future__ import annotations

import psycopg

from seachange.catalog.postgres.connections import client_error, connect, describe

_LISTEN = "LISTEN seachange_descriptors"


class DescriptorListener:
    """Not for several threads at once."""

    def __init__(self, url: str) -> None:
        self._name = describe(url)
        try:
            self._db = connect(url)
            self._db.execute(_LISTEN)
        except psycopg.Error as problem:
            raise client_error(problem, self._name) from problem

    def wait(self, timeout_s: float) -> bool:
        """Whether descriptors were published since the last call, waiting for it if they were not."""
        try:
            return any(True for _ in self._db.notifies(timeout=timeout_s, stop_after=1))
        except psycopg.Error as problem:
            raise client_error(problem, self._name) from problem

    def close(self) -> None:
        self._db.close()
