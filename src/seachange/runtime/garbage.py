"""The garbage collector in processes that live long.

**Invariant:** what was excluded from collection is collectable again when the process exits: DuckDB's binding reports
every object that outlives the interpreter as a leak.
"""

from __future__ import annotations

import atexit
import gc


def freeze_loaded() -> None:
    """Objects that exist now are permanent: excluding them keeps the pauses of the collector short."""
    gc.collect()
    gc.freeze()
    # Registering it again replaces nothing, and calling it again does nothing.
    atexit.register(gc.unfreeze)
