"""The process of an executor that Python workers are forked from, with the kernels loaded: a worker starts at once.

Loading starts no thread, so that there is nothing a fork could lose.
"""

from __future__ import annotations

from pyspark.daemon import manager

from seachange.pipeline.spark import executor

__all__ = ["executor"]

if __name__ == "__main__":
    manager()
