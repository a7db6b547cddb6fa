"""dbt: seeds, views, tables, incremental models, snapshots, tests and the catalog of a project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2

from compat.features import Features, expect

feature = Features()
SECONDS_MAX = 300
SEED = "id,name,price,updated_at\n1,apple,1.50,2024-01-01 10:00:00\n2,pear,2.25,2024-01-02 10:00:00\n"
CHANGED = "id,name,price,updated_at\n1,apple,1.75,2024-01-05 10:00:00\n2,pear,2.25,2024-01-02 10:00:00\n3,plum,0.5,2024-01-06 10:00:00\n"  # noqa: E501
FILES = {
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\nmodels:\n  shop: {+materialized: view}\n",
    "models/dear.sql": "select id, name, price from {{ ref('fruit') }} where price > 1",
    "models/counted.sql": """
{{ config(materialized='table', indexes=[{'columns': ['id'], 'unique': true}]) }}
select f.id, count(*) as n from {{ ref('fruit') }} f join {{ ref('dear') }} d on d.id = f.id group by 1
""",
    "models/grown.sql": """
{{ config(materialized='incremental', unique_key='id', on_schema_change='append_new_columns') }}
select id, name, updated_at {% if var('more', false) %}, price {% endif %} from {{ ref('fruit') }}
{% if is_incremental() %} where updated_at >= (select max(updated_at) from {{ this }}) {% endif %}
""",
    "models/merged.sql": """
{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge') }}
select id, name || '!' as name from {{ ref('fruit') }}
""",
    "models/schema.yml": """
models:
  - name: dear
    description: what is dear
    columns:
      - {name: id, description: the key, data_tests: [unique, not_null]}
      - {name: name, data_tests: [{accepted_values: {arguments: {values: [apple, pear, plum]}}}]}
  - name: counted
    columns: [{name: id, data_tests: [{relationships: {arguments: {to: ref('dear'), field: id}}}]}]
""",
    "snapshots/fruit_history.sql": """
{% snapshot fruit_history %}
{{ config(target_schema='dbt', unique_key='id', strategy='timestamp', updated_at='updated_at') }}
select * from {{ ref('fruit') }}
{% endsnapshot %}
""",
}


@cache
def project(url: str) -> Path:
    folder = Path(tempfile.mkdtemp())
    parts = urlsplit(url)
    target = {
        "type": "postgres",
        "host": parts.hostname,
        "port": parts.port,
        "user": parts.username,
        "password": parts.password or "none",
        "dbname": parts.path.removeprefix("/"),
        "schema": "dbt",
        "threads": 2,
    }
    profiles = {"shop": {"target": "here", "outputs": {"here": target}}}
    for name, text in {**FILES, "profiles.yml": json.dumps(profiles), "seeds/fruit.csv": SEED}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    dbt(folder, "seed")
    dbt(folder, "run")
    return folder


def dbt(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "dbt.cli.main", "--no-use-colors", "--quiet", *arguments]
    environment = {**os.environ, "DBT_PROFILES_DIR": str(folder), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )
    if done.returncode != 0:
        raise AssertionError(done.stdout.strip())


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    connection = psycopg2.connect(url)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())
    finally:
        connection.close()


@feature("seed and run: views, tables, incremental models")
def first(url: str) -> None:
    project(url)
    expect(rows(url, "select id, name from dbt.dear order by id"), [(1, "apple"), (2, "pear")])
    expect(rows(url, "select id, n from dbt.counted order by id"), [(1, 1), (2, 1)])


@feature("test")
def tests(url: str) -> None:
    dbt(project(url), "test")


@feature("snapshot")
def snapshot(url: str) -> None:
    folder = project(url)
    dbt(folder, "snapshot")
    (folder / "seeds" / "fruit.csv").write_text(CHANGED)
    dbt(folder, "seed")
    dbt(folder, "snapshot")
    found = rows(url, "select id, price, dbt_valid_to is null from dbt.fruit_history order by id, dbt_valid_from")
    expect(found, [(1, 1.5, False), (1, 1.75, True), (2, 2.25, True), (3, 0.5, True)])


@feature("incremental: merge, on_schema_change")
def incremental(url: str) -> None:
    folder = project(url)
    (folder / "seeds" / "fruit.csv").write_text(CHANGED)
    dbt(folder, "seed")
    dbt(folder, "run", "--vars", "{more: true}")
    expect(rows(url, "select id, name from dbt.merged order by id"), [(1, "apple!"), (2, "pear!"), (3, "plum!")])
    expect(rows(url, "select id, price from dbt.grown order by id"), [(1, 1.75), (2, 2.25), (3, 0.5)])


@feature("docs generate")
def docs(url: str) -> None:
    folder = project(url)
    dbt(folder, "docs", "generate")
    nodes = json.loads((folder / "target" / "catalog.json").read_text())["nodes"]
    types = {name: column["type"] for name, column in nodes["model.shop.dear"]["columns"].items()}
    expect(types, {"id": "integer", "name": "text", "price": "double precision"})


@feature("--full-refresh")
def refresh(url: str) -> None:
    folder = project(url)
    dbt(folder, "seed", "--full-refresh")
    dbt(folder, "run", "--full-refresh")


if __name__ == "__main__":
    feature.run()
