"""Liquibase: updates and rollbacks of a change log, and the change log that it generates from a database."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from compat.features import Features, expect
from compat.load import expect_migrated, expect_nothing_left

feature = Features()
JAVA, JARS = os.environ.get("JAVA", "java"), os.environ.get("JARS", "")
SECONDS_MAX = 120
# Only what PostgreSQL needs of the many that come along.
LIBRARIES = ("liquibase-core", "picocli", "postgresql", "snakeyaml", "commons-*", "opencsv", "jaxb-*")

CHANGES = """
  <changeSet id="1" author="compat">
    <createTable tableName="author">
      <column name="id" type="int" autoIncrement="true"><constraints primaryKey="true"/></column>
      <column name="name" type="varchar(80)"><constraints nullable="false" unique="true"/></column>
    </createTable>
  </changeSet>
  <changeSet id="2" author="compat">
    <createTable tableName="book" remarks="what is sold">
      <column name="id" type="bigint"><constraints primaryKey="true" primaryKeyName="book_key"/></column>
      <column name="author_id" type="int">
        <constraints nullable="false" foreignKeyName="book_author" references="author(id)"/>
      </column>
      <column name="price" type="decimal(8,2)" defaultValueNumeric="1.5"/>
    </createTable>
    <createIndex tableName="book" indexName="book_price"><column name="price"/></createIndex>
  </changeSet>
  <changeSet id="3" author="compat">
    <addColumn tableName="book"><column name="title" type="varchar(40)" defaultValue="none"/></addColumn>
    <addNotNullConstraint tableName="book" columnName="title" columnDataType="varchar(40)"/>
    <renameColumn tableName="book" oldColumnName="title" newColumnName="name" columnDataType="varchar(40)"/>
    <createSequence sequenceName="numbers" startValue="10" incrementBy="5"/>
    <createView viewName="cheap">select id, name from book where price &lt; 10</createView>
  </changeSet>
  <changeSet id="4" author="compat">
    <insert tableName="author"><column name="name" value="Woolf"/></insert>
    <sql>insert into book (id, author_id) select 1, id from author</sql>
    <rollback>delete from book; delete from author</rollback>
  </changeSet>
"""
# A change set is one transaction.
SHOP = """
  <changeSet id="initial" author="compat">
    <createTable tableName="customer">
      <column name="id" type="int"><constraints primaryKey="true"/></column>
      <column name="visits" type="int"><constraints nullable="false"/></column>
    </createTable>
    <createTable tableName="purchase">
      <column name="id" type="bigint"><constraints primaryKey="true"/></column>
      <column name="customer_id" type="int"><constraints nullable="false"/></column>
      <column name="code" type="text"><constraints nullable="false"/></column>
      <column name="amount" type="int"><constraints nullable="false"/></column>
    </createTable>
  </changeSet>
"""
SHOP_CHANGE = """
  <changeSet id="change" author="compat">
    <addColumn tableName="purchase"><column name="region" type="varchar(10)" defaultValue="eu"/></addColumn>
    <update tableName="purchase"><column name="region" value="us"/><where>customer_id % 2 = 0</where></update>
    <addNotNullConstraint tableName="purchase" columnName="region"/>
    <createIndex tableName="purchase" indexName="purchase_code" unique="true"><column name="code"/></createIndex>
    <addForeignKeyConstraint constraintName="purchase_customer" baseTableName="purchase"
      baseColumnNames="customer_id" referencedTableName="customer" referencedColumnNames="id"/>
    <modifyDataType tableName="purchase" columnName="amount" newDataType="numeric(12, 2)"/>
    <addColumn tableName="customer"><column name="level" type="int"/></addColumn>
    <update tableName="customer"><column name="level" valueComputed="id % 3"/></update>
    <addNotNullConstraint tableName="customer" columnName="level"/>
    <addDefaultValue tableName="customer" columnName="level" defaultValueNumeric="0"/>
  </changeSet>
"""
SHOP_FAILURE = """
  <changeSet id="failure" author="compat">
    <addColumn tableName="purchase"><column name="half" type="int"/></addColumn>
    <sql>update purchase set half = amount / 2, code = upper(code)</sql>
    <createIndex tableName="purchase" indexName="purchase_half"><column name="half"/></createIndex>
    <modifyDataType tableName="purchase" columnName="amount" newDataType="text"/>
    <dropForeignKeyConstraint baseTableName="purchase" constraintName="purchase_customer"/>
    <createIndex tableName="purchase" indexName="purchase_once" unique="true"><column name="customer_id"/></createIndex>
  </changeSet>
"""
CHANGE_LOG = """<?xml version="1.0" encoding="UTF-8"?>
<databaseChangeLog xmlns="http://www.liquibase.org/xml/ns/dbchangelog"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://www.liquibase.org/xml/ns/dbchangelog
        http://www.liquibase.org/xml/ns/dbchangelog/dbchangelog-4.28.xsd">
%s
</databaseChangeLog>
"""


def liquibase(url: str, folder: Path, *arguments: str) -> str:
    parts = urlsplit(url)
    jars = [str(path) for name in LIBRARIES for path in sorted(Path(JARS).glob(f"{name}.jar"))]
    command = [JAVA, "-cp", ":".join(jars), "liquibase.integration.commandline.LiquibaseCommandLine"]
    command += ["--log-level=warning", f"--search-path={folder}", *arguments[:1]]
    command += [f"--url=jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}"]
    command += [f"--username={parts.username}", f"--password={parts.password}", *arguments[1:]]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX, cwd=folder, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        problem = [line for line in done.stderr.splitlines() if "ERROR" in line or "Unexpected" in line]
        os.write(2, done.stderr.encode())
        raise AssertionError(" ".join(problem or done.stderr.splitlines()[-3:]))
    return done.stdout + done.stderr


def run(url: str, *arguments: str, changes: str = CHANGES) -> str:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "changes.xml").write_text(CHANGE_LOG % changes)
        return liquibase(url, Path(folder), *arguments)


def ask(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


@feature("update")
def update(url: str) -> None:
    run(url, "update", "--changelog-file=changes.xml")
    expect(ask(url, "select b.name, b.price::text, a.name from book b join author a on a.id = b.author_id"),
           [("none", "1.50", "Woolf")])  # fmt: skip
    expect(ask(url, "select count(*) from databasechangelog"), [(4,)])
    expect(ask(url, "select locked from databasechangeloglock"), [(False,)])


@feature("update again, status")
def status(url: str) -> None:
    run(url, "update", "--changelog-file=changes.xml")
    told = run(url, "status", "--changelog-file=changes.xml")
    expect("is up to date" in told, True)


@feature("generate-changelog")
def generate(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.xml"
        liquibase(url, Path(folder), "generate-changelog", f"--changelog-file={path}")
        text = path.read_text()
    for part in (
        'createTable remarks="what is sold" tableName="book"',
        'addForeignKeyConstraint baseColumnNames="author_id" baseTableName="book" constraintName="book_author"',
        'createIndex indexName="book_price"',
        'createView fullDefinition="false" viewName="cheap"',
        'primaryKeyName="book_key"',
        'type="numeric(8, 2)"',
    ):
        expect((part, part in text), (part, True))


@feature("rollback-count")
def rollback(url: str) -> None:
    run(url, "rollback-count", "--changelog-file=changes.xml", "--count=2")
    expect(ask(url, "select count(*) from databasechangelog"), [(2,)])
    expect(ask(url, "select count(*) from information_schema.views where table_name = 'cheap'"), [(0,)])


@feature("drop-all")
def drop_all(url: str) -> None:
    run(url, "drop-all")
    expect(ask(url, "select count(*) from information_schema.tables where table_schema = 'public'"), [(0,)])


def update_shop(url: str, *change_sets: str) -> None:
    run(url, "update", "--changelog-file=changes.xml", changes=SHOP + "".join(change_sets))


@feature("update of tables with rows, under load")
def update_under_load(url: str) -> None:
    update_shop(url)
    expect_migrated(url, lambda: update_shop(url, SHOP_CHANGE))


@feature("a change set that fails half-way leaves nothing, under load")
def failing_under_load(url: str) -> None:
    expect_nothing_left(url, lambda: update_shop(url, SHOP_CHANGE, SHOP_FAILURE), AssertionError)


if __name__ == "__main__":
    feature.run()
