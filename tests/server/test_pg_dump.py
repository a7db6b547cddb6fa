"""pg_dump and pg_restore against the server: a database comes back as it was, in plain and in custom format."""

import re
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.support.patience import PATIENCE_S
from tests.support.postgres import INSTALLATIONS, Account, find_binaries
from tests.support.serving import serving

SCHEMA = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE SCHEMA s2;
CREATE TABLE people (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL DEFAULT 'x', m mood,
  tags text[] DEFAULT '{}', n numeric(10,2) CHECK (n > 0), d timestamptz DEFAULT now(), j jsonb, c char(3),
  v varchar(10) UNIQUE, g int GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE s2.orders (id serial PRIMARY KEY, person int REFERENCES people ON DELETE CASCADE, at date, amount numeric);
CREATE INDEX ON people (lower(name));
CREATE INDEX orders_at ON s2.orders (at DESC) WHERE amount > 0.5;
CREATE VIEW v AS SELECT p.name, o.amount FROM people p JOIN s2.orders o ON o.person = p.id;
CREATE VIEW s2.w AS WITH x AS (SELECT id FROM people) SELECT people.name, (SELECT count(*) FROM v) FROM people, x;
CREATE MATERIALIZED VIEW s2.totals (who, total) AS SELECT person, sum(amount) FROM s2.orders GROUP BY person;
CREATE UNIQUE INDEX ON s2.totals (who);
CREATE MATERIALIZED VIEW empty AS SELECT * FROM s2.totals WITH NO DATA;
CREATE VIEW of_empty AS SELECT who, total + 1 AS more FROM empty;
COMMENT ON MATERIALIZED VIEW s2.totals IS 'sums';
CREATE VIEW renamed (a, b) AS SELECT name, id + 1 FROM people ORDER BY n;
ALTER TABLE people RENAME n TO price;
ALTER TABLE people RENAME name TO "full name";
ALTER TABLE people RENAME TO persons;
COMMENT ON TABLE persons IS 'it''s people';
COMMENT ON COLUMN persons.price IS 'amount';
CREATE SEQUENCE sq START 5;
CREATE TABLE kinds (a smallint, b bigint DEFAULT 7 PRIMARY KEY, f float8 DEFAULT 1.5, dt date DEFAULT '2024-01-01',
  tm time(3), iv interval DEFAULT '1 day', u uuid, by bytea DEFAULT '\\x00ff', ip inet, js json, arr int[], ms mood[],
  big numeric DEFAULT 12345.678, CHECK (f > 0.5 AND b::numeric <> 2.5));
CREATE TABLE "Odd Name" ("Col 1" int DEFAULT 3 UNIQUE, "select" text COLLATE "C");
CREATE ROLE reader;
GRANT SELECT ON persons TO reader;
INSERT INTO persons ("full name", m, tags, price, j, c, v) VALUES ('a', 'ok', '{x,"y z"}', 1.5, '{"a": 1}', 'ab', 'v1'),
  ('b', NULL, NULL, 2, NULL, NULL, NULL);
INSERT INTO s2.orders (person, at, amount) VALUES (1, '2024-01-01', 5.5), (2, NULL, NULL);
INSERT INTO kinds VALUES (1, 2, 0.75, '2024-02-29', '10:00:00.123', '1 mon -3 days',
  'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\\x61', '10.0.0.1', '{"a":  1}', '{1,NULL}', '{ok}', 1);
INSERT INTO "Odd Name" VALUES (1, E'tab\\there\\nline\\\\');
SELECT nextval('sq');
REFRESH MATERIALIZED VIEW s2.totals
"""


def run(name: str, version: int, *arguments: str, given: str = "") -> str:
    program = find_binaries(version, Path(), Account()) / name
    done = subprocess.run([program, *arguments], input=given, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def dump(version: int, url: str) -> str:
    """Without comments, and the key that a session makes up. Rows have no order."""
    found = re.sub(r"(?m)^(--.*|\\(un)?restrict .*|)\n", "", run("pg_dump", version, url))
    return re.sub(
        r"(?s)(?<= FROM stdin;\n).*?(?=\\\.\n)", lambda rows: "".join(sorted(rows[0].splitlines(True))), found
    )


@pytest.mark.parametrize("version", INSTALLATIONS)
def test_a_dump_restores_the_database(version: int, tmp_path: Path) -> None:
    with serving(tmp_path / "data") as served:
        with psycopg.connect(served.url, autocommit=True) as connection:
            connection.execute(SCHEMA.encode())
            connection.execute("CREATE DATABASE plain")
            connection.execute("CREATE DATABASE custom")
        first = dump(version, served.url)
        plain, custom = (re.sub(r"/\w+(\?|$)", rf"/{name}\1", served.url) for name in ("plain", "custom"))
        script = run("pg_dump", version, served.url)
        run("psql", version, "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", plain, given=script)
        archive = str(tmp_path / "archive")
        run("pg_dump", version, "-Fc", "-f", archive, served.url)
        run("pg_restore", version, "-1", "-d", custom, archive)
        assert "COPY public.persons" in first
        assert "REFRESH MATERIALIZED VIEW s2.totals" in first
        with psycopg.connect(plain) as connection:
            rows = connection.execute("SELECT * FROM s2.totals ORDER BY who").fetchall()
        assert [str(row) for row in rows] == ["(1, Decimal('5.5'))", "(2, None)"]
        assert dump(version, plain) == first
        assert dump(version, custom) == first
