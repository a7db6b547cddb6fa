"""Writes docs/benchmarks.md, its pictures and the figures of the README from the results in docs/benchmarks."""

from bench.page.files import write_all
from bench.store import KEPT

if __name__ == "__main__":
    write_all(KEPT)
