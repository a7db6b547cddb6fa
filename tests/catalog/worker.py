"""A process that opens a catalog, and may commit: `python -m tests.catalog.worker URL WORK NUMBER PROCESSES`."""

import sys
from pathlib import Path

from seachange.catalog.open import open_catalog
from seachange.catalog.port import Catalog
from seachange.model.ids import Epoch
from seachange.model.log import Committed, Conflict
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from tests.catalog.builders import LONG_MS, batch, request, submit
from tests.support.workers import wait_until


def open_only(catalog: Catalog, epoch: Epoch, number: int) -> None:
    """To open it is all."""


def commit_once(catalog: Catalog, epoch: Epoch, number: int) -> None:
    """Prints what it commits before it does."""
    what = request(0, writes=(1,), batches=(batch(),))
    print(what.commit_id.hex(), flush=True)
    submit(catalog, epoch, what)


def commit_number(catalog: Catalog, epoch: Epoch, number: int) -> None:
    """Keys of its own and one that all processes share, so that some conflict and are retried."""
    at = catalog.head()
    for step in range(number):
        keys = (epoch * 1_000_000 + step, -(step % 7) - 1)
        while True:
            outcome = submit(catalog, epoch, request(at, writes=keys, batches=(batch(),)))
            if isinstance(outcome, Committed):
                print(outcome.seq)
                break
            assert isinstance(outcome, Conflict)
            at = catalog.head()


def commit_until(catalog: Catalog, epoch: Epoch, target: int) -> None:
    count = 0
    while catalog.head() < target:
        assert isinstance(submit(catalog, epoch, request(0, batches=(batch(),))), Committed)
        count += 1
    print(count)


WORK = {"open": open_only, "once": commit_once, "number": commit_number, "until": commit_until}


def main() -> None:
    url, work, number, processes = sys.argv[1:]
    catalog = open_catalog(url, Path(), SYSTEM_CLOCK, SYSTEM_ENTROPY)
    epoch = catalog.register_node("worker", LONG_MS)
    wait_until(lambda: len(catalog.nodes()) >= int(processes), "the others to start")
    WORK[work](catalog, epoch, int(number))
    catalog.close()


if __name__ == "__main__":
    main()
