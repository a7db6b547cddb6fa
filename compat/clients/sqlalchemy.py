"""SQLAlchemy 2: a schema with every feature, the ORM on it, its reflection, and PostgreSQL's own statements."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
from decimal import Decimal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID, insert
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload

from compat.features import Features, expect

feature = Features()


class Mood(enum.Enum):
    sad = 1
    happy = 2


class Model(DeclarativeBase):
    pass


class Author(Model):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(80), unique=True)
    mood: Mapped[Mood] = mapped_column(default=Mood.happy)
    born: Mapped[dt.date | None]
    books: Mapped[list[Book]] = relationship(back_populates="author", cascade="all, delete-orphan")


class Book(Model):
    __tablename__ = "book"
    __table_args__ = (
        sa.CheckConstraint("price > 0", name="price_positive"),
        sa.UniqueConstraint("author_id", "title", name="title_once"),
        sa.Index("book_cheap", "price", postgresql_where=sa.text("price < 10")),
        sa.Index("book_lower", sa.text("lower(title)")),
        {"comment": "what is sold"},
    )
    isbn: Mapped[str] = mapped_column(sa.CHAR(13), primary_key=True)
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("author.id", ondelete="CASCADE", name="book_author"))
    title: Mapped[str] = mapped_column(sa.Text, comment="what it is called")
    price: Mapped[Decimal] = mapped_column(sa.Numeric(8, 2), server_default="1.00")
    number: Mapped[int] = mapped_column(sa.Integer, sa.Identity(start=100))
    tags: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    facts: Mapped[dict[str, object] | None] = mapped_column(JSONB)
    key: Mapped[object | None] = mapped_column(UUID(as_uuid=True))
    at: Mapped[dt.datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    author: Mapped[Author] = relationship(back_populates="books")


def connect(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


@feature("create_all")
def create_all(url: str) -> None:
    engine = connect(url)
    Model.metadata.create_all(engine)
    # Asks which tables there are, and finds all of them.
    Model.metadata.create_all(engine)


@feature("ORM: insert, select, update, delete")
def orm(url: str) -> None:
    with Session(connect(url)) as session:
        author = Author(name="Woolf", born=dt.date(1882, 1, 25))
        author.books = [
            Book(isbn="1" * 13, title="Orlando", tags=["a", "b"], facts={"pages": 300}),
            Book(isbn="2" * 13, title="The Waves", price=Decimal("9.50")),
        ]
        session.add_all([author, Author(name="Kafka", mood=Mood.sad)])
        session.commit()
        expect((author.id, author.books[0].number, author.books[0].price), (1, 100, Decimal("1.00")))
        found = session.scalars(sa.select(Author).options(selectinload(Author.books)).order_by(Author.name)).all()
        expect([(a.name, a.mood, len(a.books)) for a in found], [("Kafka", Mood.sad, 0), ("Woolf", Mood.happy, 2)])
        author.books[1].title = "Waves"
        session.delete(author.books[0])
        session.commit()
        expect(session.scalars(sa.select(Book.title)).all(), ["Waves"])


@feature("ORM: joins, aggregates, subqueries, JSON")
def queries(url: str) -> None:
    with Session(connect(url)) as session:
        query = (
            sa.select(Author.name, sa.func.count(Book.isbn), sa.func.sum(Book.price))
            .outerjoin(Author.books)
            .group_by(Author.name)
            .having(sa.func.count(Book.isbn) >= 0)
            .order_by(Author.name)
        )
        expect([tuple(row) for row in session.execute(query)], [("Kafka", 0, None), ("Woolf", 1, Decimal("9.50"))])
        lonely = sa.select(Author.name).where(~sa.exists().where(Book.author_id == Author.id))
        expect(session.scalars(lonely).all(), ["Kafka"])
        session.execute(sa.update(Book).values(facts={"pages": 7, "in": {"x": "y"}}))
        expect(session.scalar(sa.select(Book.facts["in"]["x"].astext)), "y")
        expect(session.scalar(sa.select(Book.title).where(Book.facts.contains({"pages": 7}))), "Waves")
        ranked = sa.select(Author.name, sa.func.row_number().over(order_by=Author.name.desc())).order_by(Author.name)
        expect([tuple(row) for row in session.execute(ranked)], [("Kafka", 2), ("Woolf", 1)])
        session.rollback()


@feature("many rows at once")
def many(url: str) -> None:
    with Session(connect(url)) as session:
        session.add_all([Author(name=f"author {number}") for number in range(1500)])
        session.flush()
        expect(session.scalar(sa.select(sa.func.count()).select_from(Author)), 1502)
        session.rollback()


@feature("upsert")
def upsert(url: str) -> None:
    with connect(url).begin() as connection:
        statement = insert(Author).values(name="Kafka", mood=Mood.happy)
        statement = statement.on_conflict_do_update(index_elements=["name"], set_={"mood": statement.excluded.mood})
        (row,) = connection.execute(statement.returning(Author.name, Author.mood)).all()
        expect(tuple(row), ("Kafka", Mood.happy))
        again = insert(Author).values(name="Kafka", mood=Mood.sad).on_conflict_do_nothing()
        expect(connection.execute(again.returning(Author.id)).all(), [])


@feature("savepoints")
def savepoints(url: str) -> None:
    with Session(connect(url)) as session:
        session.add(Author(name="Eco"))
        try:
            with session.begin_nested():
                session.add(Author(name="Kafka", mood=Mood.sad))
        except sa.exc.IntegrityError:
            pass
        session.commit()
        expect(session.scalar(sa.select(sa.func.count()).where(Author.name == "Eco")), 1)


@feature("for update, isolation level")
def locking(url: str) -> None:
    with Session(connect(url).execution_options(isolation_level="REPEATABLE READ")) as session:
        found = session.scalars(sa.select(Author).where(Author.name == "Eco").with_for_update()).one()
        found.mood = Mood.sad
        session.commit()


@feature("reflection: tables, columns, keys")
def reflection(url: str) -> None:
    found = sa.MetaData()
    found.reflect(connect(url), views=True)
    expect(sorted(found.tables), ["author", "book"])
    for name, table in Model.metadata.tables.items():
        expect([column.name for column in found.tables[name].columns], [column.name for column in table.columns])
        expect([column.nullable for column in found.tables[name].columns], [c.nullable for c in table.columns])
        expect([c.name for c in found.tables[name].primary_key], [c.name for c in table.primary_key])
    book = found.tables["book"].columns
    expect([repr(book[name].type) for name in ("isbn", "price", "tags", "facts", "key", "at")], [
        "CHAR(length=13)", "NUMERIC(precision=8, scale=2)", "ARRAY(TEXT())", "JSONB(astext_type=Text())", "UUID()",
        "TIMESTAMP(timezone=True)",
    ])  # fmt: skip
    expect(found.tables["author"].columns["mood"].type.enums, ["sad", "happy"])
    expect(book["title"].comment, "what it is called")
    expect(book["number"].identity.start, 100)
    (key,) = found.tables["book"].foreign_key_constraints
    expect((key.name, key.ondelete, key.referred_table.name), ("book_author", "CASCADE", "author"))


@feature("reflection: indexes, constraints, comments")
def inspection(url: str) -> None:
    inspector = sa.inspect(connect(url))
    indexes = {index["name"]: index for index in inspector.get_indexes("book")}
    expect(sorted(indexes), ["book_cheap", "book_lower", "title_once"])
    expect(indexes["book_cheap"]["dialect_options"]["postgresql_where"], "(price < (10)::numeric)")
    expect(indexes["book_lower"]["expressions"], ["lower(title)"])
    expect(indexes["title_once"]["duplicates_constraint"], "title_once")
    expect([(u["name"], u["column_names"]) for u in inspector.get_unique_constraints("book")],
           [("title_once", ["author_id", "title"])])  # fmt: skip
    (check,) = inspector.get_check_constraints("book")
    expect((check["name"], check["sqltext"]), ("price_positive", "price > 0::numeric"))
    expect(inspector.get_table_comment("book"), {"text": "what is sold"})
    expect([(each["name"], each["labels"]) for each in inspector.get_enums()], [("mood", ["sad", "happy"])])
    expect(sorted(inspector.get_sequence_names()), ["author_id_seq", "book_number_seq"])
    expect(inspector.get_schema_names(), ["information_schema", "public"])


@feature("reflection: views")
def views(url: str) -> None:
    engine = connect(url)
    with engine.begin() as connection:
        connection.execute(sa.text("create view sad as select name from author where mood = 'sad'"))
    inspector = sa.inspect(engine)
    expect(inspector.get_view_names(), ["sad"])
    expect([column["name"] for column in inspector.get_columns("sad")], ["name"])
    expect("author" in inspector.get_view_definition("sad"), True)
    with engine.begin() as connection:
        connection.execute(sa.text("drop view sad"))


@feature("asyncpg behind it")
def asynchronous(url: str) -> None:
    async def talk() -> None:
        engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
        async with AsyncSession(engine) as session:
            session.add(Author(name="Calvino"))
            await session.commit()
            expect((await session.scalars(sa.select(Author.name).where(Author.name == "Calvino"))).one(), "Calvino")
        await engine.dispose()

    asyncio.run(talk())


@feature("psycopg 2 behind it")
def older_driver(url: str) -> None:
    with Session(sa.create_engine(url.replace("postgresql:", "postgresql+psycopg2:"))) as session:
        session.add_all([Author(name=f"older {number}") for number in range(50)])
        session.commit()
        expect(session.scalar(sa.select(sa.func.count()).where(Author.name.like("older %"))), 50)


@feature("drop_all")
def drop_all(url: str) -> None:
    engine = connect(url)
    Model.metadata.drop_all(engine)
    expect(sa.inspect(engine).get_table_names(), [])


if __name__ == "__main__":
    feature.run()
