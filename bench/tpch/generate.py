"""The rows, a function of the scale factor alone: every value is drawn from a hash of its key and its column.

Sizes, keys, ranges and relations between columns are those that the queries
count on; texts are made of few words, among them those that are looked for.
"""

from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench.tpch.schema import TABLES, UPDATES

Connection = duckdb.DuckDBPyConnection

NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4),
    ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3),
    ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip

LISTS = {
    "regions": "AFRICA|AMERICA|ASIA|EUROPE|MIDDLE EAST",
    "nations": "|".join(name for name, _ in NATIONS),
    "nation_regions": "|".join(str(region) for _, region in NATIONS),
    "segments": "AUTOMOBILE|BUILDING|FURNITURE|MACHINERY|HOUSEHOLD",
    "priorities": "1-URGENT|2-HIGH|3-MEDIUM|4-NOT SPECIFIED|5-LOW",
    "instructions": "DELIVER IN PERSON|COLLECT COD|NONE|TAKE BACK RETURN",
    "modes": "REG AIR|AIR|RAIL|SHIP|TRUCK|MAIL|FOB",
    "sizes": "STANDARD|SMALL|MEDIUM|LARGE|ECONOMY|PROMO",
    "finishes": "ANODIZED|BURNISHED|PLATED|POLISHED|BRUSHED",
    "metals": "TIN|NICKEL|BRASS|STEEL|COPPER",
    "boxes": "SM|LG|MED|JUMBO|WRAP",
    "containers": "CASE|BOX|BAG|JAR|PKG|PACK|CAN|DRUM",
    "colours": "almond|antique|aquamarine|azure|beige|bisque|black|blanched|blue|blush|brown|burlywood|burnished|"
    "chartreuse|chiffon|chocolate|coral|cornflower|cornsilk|cream|cyan|dark|deep|dim|dodger|drab|firebrick|floral|"
    "forest|frosted|gainsboro|ghost|goldenrod|green|grey|honeydew|hot|indian|ivory|khaki|lace|lavender|lawn|lemon|"
    "light|lime|linen|magenta|maroon|medium|metallic|midnight|mint|misty|moccasin|navajo|navy|olive|orange|orchid|"
    "pale|papaya|peach|peru|pink|plum|powder|puff|purple|red|rose|rosy|royal|saddle|salmon|sandy|seashell|sienna|"
    "sky|slate|smoke|snow|spring|steel|tan|thistle|tomato|turquoise|violet|wheat|white|yellow",
    "words": "the|quickly|slyly|furiously|carefully|blithely|final|regular|express|ironic|pending|bold|even|silent|"
    "special|requests|packages|deposits|accounts|instructions|theodolites|foxes|pinto|beans|ideas|dependencies|"
    "platelets|asymptotes|somas|dugouts|sleep|wake|haggle|nag|cajole|integrate|detect|above|across|along|according|"
    "after|against|among|beneath|between|Customer|Complaints",
}

MACROS = (
    # The salt tells columns apart: without it, they would all draw the same number.
    "create macro draw(key, salt, n) as (hash(key::bigint * 64 + salt) % n)::bigint",
    "create macro of(list, key, salt) as getvariable(list)[1 + draw(key, salt, len(getvariable(list)))]",
    "create macro money(key, salt, low, high) as ((low + draw(key, salt, high - low + 1)) / 100)::decimal(15, 2)",
    "create macro words(key, salt) as of('words', key, salt) || ' ' || of('words', key, salt + 1) || ' ' || "
    "of('words', key, salt + 2)",
    "create macro phone(key, nation) as (10 + nation) || '-' || (100 + draw(key, 50, 900)) || '-' || "
    "(100 + draw(key, 51, 900)) || '-' || (1000 + draw(key, 52, 9000))",
    "create macro price(part) as ((90000 + (part // 10) % 20001 + 100 * (part % 1000)) / 100)::decimal(15, 2)",
    # The four suppliers of a part, all different.
    "create macro supplier_of(part, i, suppliers) as "
    "((part + i * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1)::integer",
)

QUERIES = {
    "region": "select i::integer as r_regionkey, getvariable('regions')[i + 1] as r_name, words(i, 1) as r_comment "
    "from range(5) as r(i)",
    "nation": "select i::integer as n_nationkey, getvariable('nations')[i + 1] as n_name, "
    "getvariable('nation_regions')[i + 1]::integer as n_regionkey, words(i, 1) as n_comment from range(25) as r(i)",
    "supplier": """
        select i::integer as s_suppkey, 'Supplier#' || lpad(i::varchar, 9, '0') as s_name, words(i, 1) as s_address,
            draw(i, 4, 25)::integer as s_nationkey, phone(i, draw(i, 4, 25)) as s_phone,
            money(i, 5, -99999, 999999) as s_acctbal,
            words(i, 6) || case when draw(i, 9, 200) = 0 then ' Customer mild Complaints ' else ' ' end
                || words(i, 10) as s_comment
        from range(1, {suppliers} + 1) as r(i)
    """,
    "customer": """
        select i::integer as c_custkey, 'Customer#' || lpad(i::varchar, 9, '0') as c_name, words(i, 1) as c_address,
            draw(i, 4, 25)::integer as c_nationkey, phone(i, draw(i, 4, 25)) as c_phone,
            money(i, 5, -99999, 999999) as c_acctbal, of('segments', i, 6) as c_mktsegment,
            words(i, 7) || ' ' || words(i, 10) || ' ' || words(i, 13) as c_comment
        from range(1, {customers} + 1) as r(i)
    """,
    "part": """
        select i::integer as p_partkey,
            concat_ws(' ', of('colours', i, 1), of('colours', i, 2), of('colours', i, 3), of('colours', i, 4),
                of('colours', i, 5)) as p_name,
            'Manufacturer#' || (1 + draw(i, 6, 5)) as p_mfgr,
            'Brand#' || (1 + draw(i, 6, 5)) || (1 + draw(i, 7, 5)) as p_brand,
            of('sizes', i, 8) || ' ' || of('finishes', i, 9) || ' ' || of('metals', i, 10) as p_type,
            (1 + draw(i, 11, 50))::integer as p_size, of('boxes', i, 12) || ' ' || of('containers', i, 13)
                as p_container,
            price(i) as p_retailprice, left(of('words', i, 14) || ' ' || of('words', i, 15), 23) as p_comment
        from range(1, {parts} + 1) as r(i)
    """,
    "partsupp": """
        select p::integer as ps_partkey, supplier_of(p, i, {suppliers}) as ps_suppkey,
            (1 + draw(p * 4 + i, 1, 9999))::integer as ps_availqty, money(p * 4 + i, 2, 100, 100000) as ps_supplycost,
            concat_ws(' ', words(p * 4 + i, 3), words(p * 4 + i, 6), words(p * 4 + i, 9), words(p * 4 + i, 12),
                words(p * 4 + i, 15)) as ps_comment
        from range(1, {parts} + 1) as r(p), range(4) as s(i)
        order by ps_partkey, ps_suppkey
    """,
    # Keys come eight and eight with gaps between; a third of the customers has no orders.
    "order_dates": """
        select (i // 8 * 32 + i % 8 + 1)::bigint as orderkey,
            date '1992-01-01' + draw(i, 1, 2406)::integer as orderdate, 1 + draw(i, 2, 7) as lines
        from range({orders}) as r(i)
    """,
    "lineitem_draws": """
        select orderkey, line, orderdate, orderkey * 8 + line as k, 1 + draw(k, 1, {parts}) as part,
            1 + draw(k, 2, 50) as quantity, orderdate + (1 + draw(k, 3, 121))::integer as shipdate
        from order_dates, range(1, 8) as l(line) where line <= lines
    """,
    "lineitem": """
        select orderkey as l_orderkey, part::integer as l_partkey,
            supplier_of(part, draw(k, 4, 4), {suppliers}) as l_suppkey, line::integer as l_linenumber,
            quantity::decimal(15, 2) as l_quantity, (quantity * price(part))::decimal(15, 2) as l_extendedprice,
            money(k, 5, 0, 10) as l_discount, money(k, 6, 0, 8) as l_tax,
            case when shipdate + (1 + draw(k, 7, 30))::integer > date '1995-06-17' then 'N'
                when draw(k, 8, 2) = 0 then 'R' else 'A' end as l_returnflag,
            case when shipdate > date '1995-06-17' then 'O' else 'F' end as l_linestatus,
            shipdate as l_shipdate, orderdate + (30 + draw(k, 9, 61))::integer as l_commitdate,
            shipdate + (1 + draw(k, 7, 30))::integer as l_receiptdate,
            of('instructions', k, 10) as l_shipinstruct, of('modes', k, 11) as l_shipmode, words(k, 12) as l_comment
        from lineitem_draws order by l_orderkey, l_linenumber
    """,
    "orders": """
        select orderkey as o_orderkey,
            (draw(orderkey, 3, {customers} // 3) * 3 + 1 + draw(orderkey, 4, 2))::integer as o_custkey,
            case when open = 0 then 'F' when closed = 0 then 'O' else 'P' end as o_orderstatus,
            total as o_totalprice, orderdate as o_orderdate, of('priorities', orderkey, 5) as o_orderpriority,
            'Clerk#' || lpad((1 + draw(orderkey, 6, {clerks}))::varchar, 9, '0') as o_clerk, 0 as o_shippriority,
            words(orderkey, 7) || ' ' || words(orderkey, 10) as o_comment
        from order_dates join (
            select l_orderkey, sum(l_extendedprice * (1 + l_tax) * (1 - l_discount))::decimal(15, 2) as total,
                count(*) filter (l_linestatus = 'O') as open, count(*) filter (l_linestatus = 'F') as closed
            from lineitem group by l_orderkey
        ) on l_orderkey = orderkey
        order by o_orderkey
    """,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    suppliers: int
    customers: int
    parts: int
    orders: int
    clerks: int


def sizes_of(scale_factor: float) -> Sizes:
    return Sizes(*(round(base * scale_factor) for base in (10_000, 150_000, 200_000, 1_500_000, 1_000)))


def generate(folder: Path, scale_factor: float) -> dict[str, Path]:
    """Writes the rows of each table as a Parquet file, sorted by key."""
    paths = {table: folder / f"{table}.parquet" for table in TABLES}
    with duckdb.connect() as connection:
        create_tables(connection, sizes_of(scale_factor))
        for table, path in paths.items():
            connection.execute(f"copy {table} to '{path}' (format parquet)")
    return paths


def create_tables(connection: Connection, sizes: Sizes) -> None:
    for name, words in LISTS.items():
        connection.execute(f"set variable {name} = string_split('{words}', '|')")
    for macro in MACROS:
        connection.execute(macro)
    numbers = {name: getattr(sizes, name) for name in Sizes.__slots__}
    for table, query in QUERIES.items():
        connection.execute(f"create table {table} as {query.format(**numbers)}")


def update(source: Path, target: Path, table: str) -> None:
    """The contents of the file after the update of its table, as another file in the same order."""
    condition, assignments = UPDATES[table]
    changed = ", ".join(
        f"(case when {condition} then {value} else {column} end)::decimal(15, 2) as {column}"
        for column, value in assignments.items()
    )
    with duckdb.connect() as connection:
        connection.execute("set integer_division = true")
        connection.execute(f"copy (select * replace ({changed}) from '{source}') to '{target}' (format parquet)")
