"""A process that gets no more threads, as at the limit of its container."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# No machine has the address space for such a stack.
STACK_BYTES = 1 << 50


@contextmanager
def no_threads() -> Iterator[None]:
    before = threading.stack_size(STACK_BYTES)
    try:
        yield
    finally:
        threading.stack_size(before)
