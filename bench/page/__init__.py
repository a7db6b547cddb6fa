"""The benchmark page, generated from the stored results: `python -m bench.page`. Nothing is measured here."""
