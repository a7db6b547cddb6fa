"""Layouts read back as they were written, whatever became of the columns from one to the next."""

from hypothesis import given
from hypothesis import strategies as st

from seachange.model.codecs.descriptor_json import (
    LAYOUT_TEXTS,
    ListTexts,
    decode_layouts,
    encode_layouts,
)
from seachange.model.ids import ColumnId, LayoutId
from seachange.model.schema.descriptor import Layout
from seachange.values.types import Kind, SqlType

TYPES = {kind.value: SqlType(kind) for kind in (Kind.INTEGER, Kind.BIGINT, Kind.TEXT)}

columns = st.dictionaries(st.integers(1, 6).map(ColumnId), st.sampled_from(list(TYPES.values())), max_size=6)


def encoded(layouts: list[Layout]) -> list[list[object]]:
    return encode_layouts(layouts, lambda type_: [type_.kind.value])


@given(st.lists(columns.map(lambda found: tuple(found.items())), max_size=6))
def test_any_layouts_read_back(shapes: list[tuple[tuple[ColumnId, SqlType], ...]]):
    layouts = [Layout(LayoutId(number), shape) for number, shape in enumerate(shapes, 1)]
    assert list(decode_layouts(encoded(layouts), lambda body: TYPES[body[0]])) == layouts


def test_a_layout_that_follows_is_written_as_what_it_changes():
    integer = TYPES["integer"]
    wide = tuple((ColumnId(number), integer) for number in range(1, 100))
    added = (*wide, (ColumnId(100), integer))
    layouts = [Layout(LayoutId(1), wide), Layout(LayoutId(2), added), Layout(LayoutId(3), added[1:])]
    assert encoded(layouts)[1:] == [[2, [[100, ["integer"]]], []], [3, [], [1]]]


def test_layouts_of_older_catalogs_are_written_out():
    bodies = [[1, [[1, ["integer"]]]], [2, [[1, ["integer"]], [2, ["text"]]]]]
    found = list(decode_layouts(bodies, lambda body: TYPES[body[0]]))
    assert [len(layout.columns) for layout in found] == [1, 2]


@given(st.lists(columns.map(lambda found: tuple(found.items())), min_size=1, max_size=6), st.data())
def test_texts_of_layouts_are_those_of_a_fresh_encoder(
    shapes: list[tuple[tuple[ColumnId, SqlType], ...]], data: st.DataObject
):
    """Versions share their first layouts, in any order of encoding; a branch has others after them."""
    every = tuple(Layout(LayoutId(number), shape) for number, shape in enumerate(shapes, 1))
    branch = (*every[:-1], Layout(LayoutId(99), ()))
    kept = ListTexts(LAYOUT_TEXTS.write)
    for count in data.draw(st.lists(st.integers(1, len(every)), max_size=5)):
        for layouts in (every[:count], branch[:count]):
            assert kept.encode(layouts) == ListTexts(LAYOUT_TEXTS.write).encode(layouts)
