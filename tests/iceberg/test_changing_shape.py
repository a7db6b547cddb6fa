"""Other engines, in processes of their own, print the sums that SQL shows while a table changes its shape."""

import subprocess
import sys

import pytest

from compat.environment import ROOT, Unavailable, iceberg, iceberg_spark

pytest.importorskip("pyiceberg", reason="pyiceberg is not installed (make setup)")

SCRIPT = ROOT / "examples" / "iceberg" / "changing_shape.py"


def run(*arguments: str) -> list[str]:
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.endswith(" =")]


def test_pyiceberg_prints_the_sums_of_sql():
    assert len(run()) == 11


@pytest.mark.slow
def test_duckdb_prints_the_sums_of_sql():
    try:
        python = iceberg()
    except Unavailable as problem:
        pytest.skip(f"DuckDB's extensions for Iceberg are not available: {problem}")
    readings = run("--duckdb", str(python))
    assert len([line for line in readings if "DuckDB" in line]) == 11


@pytest.mark.slow
def test_spark_prints_the_sums_of_sql():
    try:
        python = iceberg_spark()
    except Unavailable as problem:
        pytest.skip(f"Spark 3.5 with Iceberg is not available: {problem}")
    readings = run("--spark", str(python))
    assert len([line for line in readings if "Spark" in line]) == 11
