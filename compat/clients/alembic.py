"""Alembic: upgrades and downgrades, each in a transaction, and the results of autogenerate."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations

from compat.features import Features, expect
from compat.load import expect_migrated, expect_nothing_left

feature = Features()

ENVIRONMENT = """
from alembic import context
import sqlalchemy as sa

engine = sa.create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=None, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
"""
REVISIONS = (
    (
        "op.create_table('author', sa.Column('id', sa.Integer, primary_key=True), sa.Column('name', sa.String(20)))",
        "op.drop_table('author')",
    ),
    (
        "op.add_column('author', sa.Column('born', sa.Date, server_default='2000-01-01', nullable=False))\n"
        "    op.create_index('author_name', 'author', ['name'], unique=True)\n"
        "    op.bulk_insert(sa.table('author', sa.column('name')), [{'name': 'Woolf'}, {'name': 'Kafka'}])",
        "op.execute('delete from author')\n    op.drop_index('author_name')\n    op.drop_column('author', 'born')",
    ),
    (
        "op.create_table('book', sa.Column('id', sa.BigInteger, primary_key=True),\n"
        "        sa.Column('author_id', sa.Integer, sa.ForeignKey('author.id', name='book_author'), nullable=False),\n"
        "        sa.Column('price', sa.Numeric(8, 2)))\n"
        "    op.create_check_constraint('price_positive', 'book', 'price > 0')\n"
        "    op.alter_column('author', 'name', type_=sa.String(80), nullable=False)\n"
        "    op.alter_column('author', 'name', new_column_name='full_name')",
        "op.alter_column('author', 'full_name', new_column_name='name')\n"
        "    op.alter_column('author', 'name', type_=sa.String(20), nullable=True)\n"
        "    op.drop_constraint('price_positive', 'book')\n"
        "    op.drop_table('book')",
    ),
)
# With the environment that `alembic init` creates: all of an upgrade is one transaction.
DEFAULT_ENVIRONMENT = ENVIRONMENT.replace(", transaction_per_migration=True", "")
SHOP_REVISIONS = (
    (
        "op.create_table('customer', sa.Column('id', sa.Integer, primary_key=True),\n"
        "        sa.Column('visits', sa.Integer, nullable=False))\n"
        "    op.create_table('purchase', sa.Column('id', sa.BigInteger, primary_key=True),\n"
        "        sa.Column('customer_id', sa.Integer, nullable=False), sa.Column('code', sa.Text, nullable=False),\n"
        "        sa.Column('amount', sa.Integer, nullable=False))",
        "pass",
    ),
    (
        "op.add_column('purchase', sa.Column('region', sa.String(10), server_default='eu'))\n"
        "    op.execute(\"update purchase set region = 'us' where customer_id % 2 = 0\")\n"
        "    op.alter_column('purchase', 'region', nullable=False)\n"
        "    op.create_index('purchase_code', 'purchase', ['code'], unique=True)\n"
        "    op.create_foreign_key('purchase_customer', 'purchase', 'customer', ['customer_id'], ['id'])\n"
        "    op.alter_column('purchase', 'amount', type_=sa.Numeric(12, 2), existing_type=sa.Integer)\n"
        "    op.add_column('customer', sa.Column('level', sa.Integer))\n"
        "    op.execute('update customer set level = id % 3')\n"
        "    op.alter_column('customer', 'level', nullable=False, server_default='0')",
        "pass",
    ),
    (
        "op.add_column('purchase', sa.Column('half', sa.Integer))\n"
        "    op.execute('update purchase set half = amount / 2, code = upper(code)')\n"
        "    op.create_index('purchase_half', 'purchase', ['half'])\n"
        "    op.alter_column('purchase', 'amount', type_=sa.Text, postgresql_using='amount::text')\n"
        "    op.drop_constraint('purchase_customer', 'purchase')\n"
        "    op.create_index('purchase_once', 'purchase', ['customer_id'], unique=True)",
        "pass",
    ),
)


def engine_of(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


@contextmanager
def project(
    url: str, environment: str = ENVIRONMENT, revisions: tuple[tuple[str, str], ...] = REVISIONS
) -> Iterator[Config]:
    """A folder of revisions as `alembic init` and `alembic revision` create it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "versions").mkdir()
        (Path(folder) / "env.py").write_text(environment)
        for number, (upgrade, downgrade) in enumerate(revisions, 1):
            before = repr(f"r{number - 1}") if number > 1 else None
            text = (
                f"import sqlalchemy as sa\nfrom alembic import op\n\nrevision = 'r{number}'\ndown_revision = {before}\n"
                f"\n\ndef upgrade():\n    {upgrade}\n\n\ndef downgrade():\n    {downgrade}\n"
            )
            (Path(folder) / "versions" / f"r{number}.py").write_text(text)
        config = Config(stdout=io.StringIO())
        config.set_main_option("script_location", folder)
        config.set_main_option("path_separator", "os")
        config.set_main_option("sqlalchemy.url", url.replace("postgresql:", "postgresql+psycopg:"))
        yield config


@feature("upgrade")
def upgrade(url: str) -> None:
    with project(url) as config:
        command.upgrade(config, "head")
    engine = engine_of(url)
    columns = [(c["name"], str(c["type"]), c["nullable"]) for c in sa.inspect(engine).get_columns("author")]
    expect(columns, [("id", "INTEGER", False), ("full_name", "VARCHAR(80)", False), ("born", "DATE", False)])
    with engine.connect() as connection:
        expect(connection.scalar(sa.text("select version_num from alembic_version")), "r3")
        expect(connection.scalar(sa.text("select count(*) from author where born = '2000-01-01'")), 2)


@feature("autogenerate finds no difference")
def unchanged(url: str) -> None:
    engine = engine_of(url)
    wanted = sa.MetaData()
    wanted.reflect(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        expect(compare_metadata(context, wanted), [])


@feature("autogenerate finds differences")
def changed(url: str) -> None:
    engine = engine_of(url)
    wanted = sa.MetaData()
    wanted.reflect(engine)
    wanted.tables["book"].append_column(sa.Column("pages", sa.Integer))
    wanted.remove(wanted.tables["author"])
    sa.Table("shelf", wanted, sa.Column("id", sa.Integer, primary_key=True))
    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), wanted)
    kinds = sorted(each[0] for each in found)
    expect(kinds, ["add_column", "add_table", "remove_index", "remove_table"])


@feature("batch_alter_table, constraints, comments")
def operations(url: str) -> None:
    engine = engine_of(url)
    with engine.begin() as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("book") as batch:
            batch.add_column(sa.Column("note", sa.Text, comment="said of it"))
            batch.create_unique_constraint("book_note", ["note"])
            batch.create_index("book_price", ["price"])
        operations.drop_constraint("book_author", "book", type_="foreignkey")
        operations.create_foreign_key("book_author", "book", "author", ["author_id"], ["id"], ondelete="CASCADE")
        operations.rename_table("book", "volume")
    inspector = sa.inspect(engine)
    expect(inspector.get_foreign_keys("volume")[0]["options"], {"ondelete": "CASCADE"})
    expect([each["name"] for each in inspector.get_unique_constraints("volume")], ["book_note"])
    with engine.begin() as connection:
        Operations(MigrationContext.configure(connection)).rename_table("volume", "book")


@feature("a failing revision is rolled back")
def rolled_back(url: str) -> None:
    engine = engine_of(url)
    try:
        with engine.begin() as connection:
            operations = Operations(MigrationContext.configure(connection))
            operations.add_column("author", sa.Column("half", sa.Integer))
            operations.add_column("author", sa.Column("half", sa.Integer))
    except sa.exc.ProgrammingError:
        pass
    expect("half" in [column["name"] for column in sa.inspect(engine).get_columns("author")], False)


@feature("downgrade")
def downgrade(url: str) -> None:
    with project(url) as config:
        command.downgrade(config, "base")
    expect(sa.inspect(engine_of(url)).get_table_names(), ["alembic_version"])


@feature("upgrade of tables with rows, under load")
def upgrade_under_load(url: str) -> None:
    with engine_of(url).begin() as connection:
        connection.execute(sa.text("drop table alembic_version"))
    with project(url, DEFAULT_ENVIRONMENT, SHOP_REVISIONS) as config:
        command.upgrade(config, "r1")
        expect_migrated(url, lambda: command.upgrade(config, "r2"))


@feature("a revision that fails half-way leaves nothing, under load")
def failing_under_load(url: str) -> None:
    with project(url, DEFAULT_ENVIRONMENT, SHOP_REVISIONS) as config:
        expect_nothing_left(url, lambda: command.upgrade(config, "r3"), sa.exc.IntegrityError)


if __name__ == "__main__":
    feature.run()
