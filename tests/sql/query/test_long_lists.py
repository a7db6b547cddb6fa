"""A statement with long lists means what it means when it is parsed as it was written."""

import pytest

import seachange
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.sql.run.execute import prepare

COUNT = 40


def listed(item, count=COUNT, last=None):
    """A list that the scanner takes out; one in another pair of parentheses is left where it is."""
    items = [item.format(number) for number in range(count)] + ([last] if last is not None else [])
    return ", ".join(items)


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    with seachange.connect(data=tmp_path_factory.mktemp("lists")) as made:
        cursor = made.cursor()
        cursor.execute("create type mood as enum ('m1', 'm2', 'm3')")
        cursor.execute(
            "create table t (id int primary key, s smallint, b bigint, n numeric(6,2), f float8, x text, v varchar(5), "
            "c char(5), d date, z timestamptz, u uuid, o boolean, y bytea, m mood)"
        )
        cursor.execute(
            "insert into t select i, i, i, i + 0.5, i, 'x' || i, 'x' || i, 'x' || i, date '2024-01-01' + i, "
            "timestamptz '2024-01-01 00:00+00' + i * interval '1 day', "
            "('00000000-0000-0000-0000-0000000000' || lpad(i::text, 2, '0'))::uuid, i % 2 = 0, "
            "decode(lpad(i::text, 2, '0'), 'hex'), (array['m1','m2','m3'])[i % 3 + 1]::mood "
            "from generate_series(0, 59) i"
        )
        cursor.execute("insert into t (id) values (1000)")
        made.commit()
        yield made


LISTS = {
    "id": listed("{}"),
    "s": listed("{}", last="70000"),
    "b": listed("{}", last="99999999999"),
    "n": listed("{}.5"),
    "n + 0.5": listed("{}"),
    "f": listed("{}", last="-0"),
    "id + 0": listed("{}", last="null"),
    "x": listed("'x{}'"),
    "v": listed("'x{}'"),
    "c": listed("'x{}'"),
    "d": listed("'2024-01-{:02}'", 31, last="'2024-02-01'"),
    "z": listed("'2024-01-{:02} 01:00+01'", 31, last="null").replace("-00 ", "-01 "),
    "u": listed("'00000000-0000-0000-0000-0000000000{:02}'"),
    "o": listed("'true'"),
    "y": listed("'\\x{:02}'"),
    "m": listed("'m1'"),
    "'x' || id": listed("'x{}'"),
    "id::text": listed("'{}'"),
    "d::timestamp": listed("'2024-01-{:02}'", 31, last="'2024-02-01'"),
}
FORMS = [
    "select id from t where {} in ({}) order by 1",
    "select id from t where {} not in ({}) order by 1",
    "select id, {} in ({}) from t order by 1",
    "select count(*) filter (where {} in ({})) from t",
    "select a.id, b.id from t a left join t b on a.id = b.id and b.{} in ({}) order by 1, 2",
    "select id from t where id < 20 or {} in ({}) order by 1",
    "select id from t where case when {} in ({}) then id > 5 end order by 1",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", LISTS)
def test_in_a_list(connection, form, value):
    if "b.{}" in form and not value.isalpha():
        value = "id"
    constants = LISTS[value].replace("2024-01-00", "2024-01-15")
    text = form.format(value, constants)
    first, _, rest = constants.partition(",")
    plain = form.format(value, f"({first}),{rest}")
    (taken,), (written,) = prepare(text), prepare(plain)
    # Numbers with decimals are left where they are.
    assert (taken.lists is None) == (value == "n")
    assert written.lists is None
    assert answer(connection, text) == answer(connection, plain)


def answer(connection, text, values=()):
    """The rows, with the names and types of their columns, or the number of rows changed, or the error."""
    cursor = connection.cursor()
    try:
        cursor.execute(text, values)
        columns = [column[:2] for column in cursor.description or ()]
        return cursor.fetchall() if columns else cursor.rowcount, columns
    except seachange.Error as problem:
        return problem.sqlstate
    finally:
        connection.rollback()


ROWS = ", ".join(f"({number}, 'x{number}', null)" for number in range(COUNT))
TYPED = ", ".join(f"({number}::bigint, '2024-01-{number % 28 + 1}'::date, true)" for number in range(COUNT))
ROW_FORMS = [
    "values {}",
    "select * from (values {}) v",
    "select a, pg_typeof(a), b, pg_typeof(b) from (values {}) v (a, b, c) order by a desc",
    "with v (a, b, c) as (values {}) select sum(a), max(b) from v",
    "select t.id, v.* from t join (values {}) v (a, b, c) on v.a = t.id order by 1",
    "update t set x = v.b from (values {}) v (a, b, c) where v.a = t.id returning id, t.x",
    "select * from (values {} limit 3) v",
    "values {} order by 1 limit 3",
    "values {} union all select 1000, null, null order by 1",
    "select exists (values {})",
]


@pytest.mark.parametrize("rows", [ROWS, TYPED], ids=["constants", "casts"])
@pytest.mark.parametrize("form", ROW_FORMS)
def test_rows_of_constants(connection, form, rows):
    plain = rows.replace("(0", "(0+0", 1)
    assert answer(connection, form.format(rows)) == answer(connection, form.format(plain))


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ("id, n, x", "({0}, {0}.125, 'x')"),
        ("id, x", "({}, default)"),
        ("id, o", "('{}', true)"),
        ("id, d", "({}, '2024-02-30')"),
        ("id, s", "({}, 70000)"),
        ("id, m", "({}, 'm2')"),
        ("id, v", "({}, 'too long')"),
        ("id", "({}, 1)"),
        ("id, d", "({}, '2024-02-09'::date)"),
    ],
)
@pytest.mark.parametrize(
    "ending", ["", " returning *", " on conflict (id) do update set x = excluded.x returning id, x"]
)
def test_rows_of_an_insert(connection, columns, row, ending):
    rows = ", ".join(row.format(number) for number in range(2_000, 2_040))
    text = f"insert into t ({columns}) values {rows}{ending}"
    plain = text.replace("(2000", "((2000)").replace("('2000'", "(('2000')")
    assert answer(connection, text) == answer(connection, plain)


@pytest.mark.parametrize(
    "text",
    [
        "delete from t where id in ({}) returning id",
        "update t set x = 'y' where id not in ({}) returning id",
        "insert into t (id) select i from generate_series(0, 1100) i where i in ({}) on conflict do nothing",
        "select id in ({}), count(*) from t group by 1 having count(*) in ({}) order by 1",
        "select id from t where id in (select id from t where id in ({})) order by 1 limit 3 offset 1",
        "select id from t where id in ({}) for update",
        "select coalesce({})",
        "select array[{}]",
        "explain select id from t where id in ({})",
        "select id from t where x in ({})",
        "select id from t where o in ({})",
        "select id from t where id in ('a', {})",
        "select id from t where (id, s) in ((1, 1), {})",
    ],
)
def test_lists_in_other_places(connection, text):
    constants = listed("{}")
    assert answer(connection, text.format(constants, constants)) == answer(
        connection, text.format(f"(0){constants[1:]}", constants)
    )


def test_an_invalid_constant_is_an_error_as_in_any_list(connection):
    assert answer(connection, f"select id from t where id in ({listed(chr(39) + 'a{}' + chr(39))})") == "22P02"
    assert answer(connection, f"select id from t where d in ({listed(chr(39) + 'a{}' + chr(39))})") == "22007"


@pytest.mark.parametrize(
    "text", ["select id from t where id in ({}) order by 1", "values {}", "select * from (values {}) v"]
)
def test_lists_of_parameters(connection, text):
    places = listed("%s") if "in (" in text else ", ".join(["(%s)"] * COUNT)
    plain = text.format(places.replace("%s", "(%s)", 1))
    assert answer(connection, text.format(places), list(range(COUNT))) == answer(connection, plain, list(range(COUNT)))
    assert answer(connection, text.format(places), [1, 2]) == "08P01"


def test_parameters_are_described_one_by_one(tmp_path):
    node = open_node(tmp_path)
    session = Session(node)
    session.execute("create table p (a int, b text)")
    numbers = ", ".join(f"${number}" for number in range(2, COUNT + 2))
    rows = ", ".join(f"(${2 * number + 1}, ${2 * number + 2})" for number in range(COUNT))
    (listed_,) = prepare(f"select a from p where b = $1 and a in ({numbers})")
    (inserted,) = prepare(f"insert into p values {rows}")
    described = session.describe(listed_, ())
    assert [str(type_) for type_ in described.types] == ["text"] + ["integer"] * COUNT
    assert [column.name for column in described.columns or ()] == ["a"]
    assert [str(type_) for type_ in session.describe(inserted, ()).types] == ["integer", "text"] * COUNT
    session.close()
    node.close()


def test_texts_that_differ_only_in_their_lists_share_a_plan(connection):
    cursor = connection.cursor()
    prepared = [prepare(f"select n from t where s in ({listed('{}', count)}) or x = 'x59'")[0] for count in (40, 400)]
    found = []
    for each in prepared:
        cursor.execute(each.text)
        assert each.shared is not None
        assert each.shared.plan is not None
        found.append((len(cursor.fetchall()), each.shared.plan[0]))
    assert [count for count, _ in found] == [41, 60]
    assert found[0][1] is found[1][1]


@pytest.mark.parametrize("source", ["values ({})", "select * from (values ({})) v", f"values /* {'x' * 300} */ ({{}})"])
def test_one_long_row_is_one_row(connection, source):
    cursor = connection.cursor()
    columns = ", ".join(f"c{number} int" for number in range(COUNT))
    cursor.execute(f"create table wide ({columns})")
    cursor.execute(f"insert into wide {source.format(listed('{}'))}")
    cursor.execute("select * from wide")
    assert cursor.fetchall() == [tuple(range(COUNT))]
    connection.rollback()
