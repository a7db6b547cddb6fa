"""The page of the benchmarks, written from what was kept: `python -m bench.page`. Nothing is measured here."""
