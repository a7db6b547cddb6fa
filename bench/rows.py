"""The rows of single-row commits; standard library only, since every peer imports this."""

from collections.abc import Iterator

Row = tuple[int, int, float, str, str]

# Odd, so that multiplying by it modulo a power of two is a bijection: text
# keys are unique and in no relation to the order of the ids.
MULTIPLIER = 2654435761
MODULUS = 2**32


def text_key(row_id: int) -> str:
    return f"k{row_id * MULTIPLIER % MODULUS:08x}"


def make_row(row_id: int) -> Row:
    mixed = row_id * MULTIPLIER % MODULUS
    return (row_id, mixed % 10_000, mixed / 1000, f"text-{mixed % 100_000}", text_key(row_id))


def make_rows(first_id: int, count: int) -> Iterator[Row]:
    return map(make_row, range(first_id, first_id + count))
