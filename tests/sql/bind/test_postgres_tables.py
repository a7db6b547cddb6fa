"""The tables that the binder resolves types by are those of a real PostgreSQL. `--rewrite` writes them again."""

from pathlib import Path

import psycopg
import pytest

from seachange.sql import bind
from seachange.values.types import NAMES, Kind

FOLDER = Path(bind.__file__).parent
# Types that no column here has, but expressions do.
OTHERS = """
    unknown void record jsonpath regclass regtype regnamespace regrole regproc bit varbit char
    any anyelement anyarray anynonarray anyenum anycompatible anycompatiblearray anycompatiblenonarray
"""
KNOWN = [*(names.oid for kind, names in NAMES.items() if kind is not Kind.ARRAY)]
TYPES = f"""
    WITH base AS (SELECT * FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace
      AND (oid = ANY ('{{{",".join(map(str, KNOWN))}}}') OR typname = ANY ('{{{",".join(OTHERS.split())}}}')))
    SELECT * FROM base UNION SELECT listed.* FROM base JOIN pg_type listed ON listed.oid = base.typarray
"""
QUERIES = {
    "types": f"""
        WITH known AS ({TYPES})
        SELECT concat_ws(' ', typname, oid, typcategory, typispreferred) FROM known ORDER BY typname""",
    "casts": f"""
        WITH known AS ({TYPES})
        SELECT concat_ws(' ', s.typname, t.typname, castcontext) FROM pg_cast
        JOIN known s ON s.oid = castsource JOIN known t ON t.oid = casttarget
        WHERE s.oid <> t.oid ORDER BY s.typname, t.typname""",
    "operators": f"""
        WITH known AS ({TYPES})
        SELECT concat_ws(' ', oprname, coalesce(l.typname, '-'), r.typname, t.typname) FROM pg_operator
        LEFT JOIN known l ON l.oid = oprleft JOIN known r ON r.oid = oprright JOIN known t ON t.oid = oprresult
        WHERE oprleft = 0 OR l.oid IS NOT NULL
        ORDER BY oprname, l.typname NULLS FIRST, r.typname""",
    "functions": f"""
        WITH known AS ({TYPES})
        SELECT concat_ws(' ', proname, prokind, CASE WHEN proretset THEN 's' ELSE '-' END, pronargdefaults,
          CASE WHEN provariadic <> 0 THEN 'v' ELSE '-' END, t.typname, args.names) FROM pg_proc p
        JOIN known t ON t.oid = prorettype
        CROSS JOIN LATERAL (SELECT string_agg(k.typname, ' ' ORDER BY a.n) AS names, count(*) AS known
          FROM unnest(proargtypes) WITH ORDINALITY a(type, n) JOIN known k ON k.oid = a.type) args
        WHERE pronamespace = 'pg_catalog'::regnamespace AND args.known = pronargs
          AND (proname ~ '^(array|starts_with)' OR coalesce(obj_description(p.oid, 'pg_proc'), '')
            !~ '^(implementation of|I/O|aggregate (transition|final))')
          AND proname !~ '^(binary_upgrade|pg_stat|pg_replication|pg_logical|pg_ls|pg_wal|ts_|pg_nextoid|RI_)'
        ORDER BY proname, args.names NULLS FIRST""",
}


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_table_is_that_of_postgres(postgres_url: str, rewrite: bool, name: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        lines = [str(line) for (line,) in connection.execute(QUERIES[name].encode())]
    path = FOLDER / f"{name}.txt"
    text = "\n".join(lines) + "\n"
    if rewrite:
        path.write_text(text)
    assert path.read_text() == text, "run this test with --rewrite"
