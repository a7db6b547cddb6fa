"""The DuckDBs of statements and of sorts."""

from pathlib import Path

from seachange.storage.duck import Duck
from seachange.storage.spill import sorting_connection


def test_no_progress_bar_is_drawn(tmp_path: Path):
    """DuckDB draws one over what a command line prints when a query takes long."""
    shown = "select current_setting('enable_progress_bar') and current_setting('enable_progress_bar_print')"
    with sorting_connection(tmp_path) as connection:
        assert connection.execute(shown).fetchall() == [(False,)]
    duck = Duck(tmp_path)
    assert duck.cursor().execute(shown).fetchall() == [(False,)]
    duck.close()
