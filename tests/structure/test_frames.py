"""The path of a statement from the wire to the row stays short."""

from bench.frames import count_frames

FRAMES_MAX = 15


def test_an_insert_reaches_its_row_within_few_frames():
    to_row = {name: list(count.to_row) for name, count in count_frames()}
    assert 0 < len(to_row["INSERT, prepared"]) <= FRAMES_MAX, to_row["INSERT, prepared"]
