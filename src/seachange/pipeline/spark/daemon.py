"""The process of an executor that Python workers are forked from, with the kernels loaded: a worker starts at once.

Loading starts no thread, so that there is nothing a fork could lose.
"""

from __future__ import annotations

import gc
from zipimport import zipimporter

from pyspark.daemon import manager

from seachange.pipeline.spark import packed_task

__all__ = ["packed_task"]


def _keep(importer: zipimporter) -> None:
    del importer


if __name__ == "__main__":
    # With every task Spark has Python forget what is in the archives on its path, Spark's own jar among them, and the
    # next import reads their lists again: 60 ms for a task. They never change.
    setattr(zipimporter, "invalidate_caches", _keep)  # noqa: B010 - a method of another's class
    # After every task it has Python look for garbage: among all that was loaded here, 50 ms, unless that is set aside.
    gc.collect()
    gc.freeze()
    manager()
