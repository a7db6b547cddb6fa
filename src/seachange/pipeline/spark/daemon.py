"""The daemon of a Spark executor from which Python workers are forked, with the kernels loaded, so that a worker starts
at once.

Loading starts no thread, so a fork is safe.
"""

from __future__ import annotations

from zipimport import zipimporter

from pyspark.daemon import manager

from seachange.pipeline.spark import packed_task
from seachange.runtime.garbage import freeze_loaded

__all__ = ["packed_task"]


def _keep(importer: zipimporter) -> None:
    del importer


if __name__ == "__main__":
    # For every task Spark invalidates Python's caches of the archives on its path, including its own jar, and the next
    # import reads their directories again: 60 ms per task. They never change.
    setattr(zipimporter, "invalidate_caches", _keep)  # noqa: B010 - a method of another's class
    # After every task Spark runs the garbage collector: 50 ms over the loaded modules, unless they are frozen.
    freeze_loaded()
    manager()
