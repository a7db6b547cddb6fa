"""A case of the bench: one change of a table, and all that has to be known of it to run it in every way."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# The table that is changed, if a case has no need of another.
COLUMNS = """id int primary key, a int not null, b text, c int check (c < 1000), n int,
             p int references p (id) on delete cascade on update cascade"""
KEYLESS = COLUMNS.replace("id int primary key", "id int not null")
# The kinds of writers there are.
ALL = (
    "insert",
    "update",
    "move",
    "delete",
    "upsert",
    "keep",
    "cascade",
    "cascade key",
    "load",
    "copy",
    "update many",
    "delete many",
)
# A refusal that is documented: a transaction in flight that cannot be made to fit, and is to be tried again.
TRY_AGAIN = frozenset({"40001"})


@dataclass(frozen=True, slots=True)
class Case:
    """`statement` changes table t. `changes` is how the description of t differs in the end, a line for each part.

    `columns` are those of t and of its twin w, which no statement changes; `setup` is run when t has its rows, and w
    is a copy of t as it then is. `renames` gives the new names of columns, by their old ones.
    `at_once`: the commit of the statement, or of a block of them, is the whole change. `fails`: it fails for what
    `setup` has left behind, until `repair` was run. `spoil` is a statement that stands against it, on {t}, with the
    SQLSTATE that either the change or the statement gets. `refuses`: what transactions in flight may get when it is
    published. `twin` does to w what the change does to the rows of t; `converts` are the columns of t that become
    something else, as expressions over the twin's; `without` are kinds of writers that have no place in it; `in_two`:
    it takes two changes, one after the other; `none` are queries that give no row when the change is done. `repeats`:
    the client that replaces one that died sends it again, whatever its outcome was. `waits`: for the transactions that
    have written to t.
    """

    name: str
    statement: str
    changes: str
    columns: str = COLUMNS
    setup: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    at_once: bool = False
    fails: str = ""
    repair: tuple[str, ...] = ()
    spoil: tuple[str, str] | None = None
    refuses: frozenset[str] = frozenset()
    twin: str = ""
    without: frozenset[str] = frozenset()
    converts: Mapping[str, str] = field(default_factory=dict)
    none: tuple[str, ...] = ()
    in_two: bool = False
    repeats: bool = False
    waits: bool = False

    def __str__(self) -> str:
        return self.name
