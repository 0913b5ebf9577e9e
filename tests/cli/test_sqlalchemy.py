"""SQLAlchemy on psycopg against a real environment: reflection, definitions in a transaction, a simple mapping."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from everview.server.run import Running

OBJECTS = """
CREATE TABLE items (id int NOT NULL, name text DEFAULT 'none', price numeric(8,2), tags text[], at mz_timestamp);
COMMENT ON TABLE items IS 'what is sold';
COMMENT ON COLUMN items.price IS 'in euros';
CREATE VIEW cheap AS SELECT id, name FROM items WHERE price < 10;
CREATE INDEX items_id ON items (id, name);
CREATE INDEX items_upper ON items (id, upper(name));
CREATE SCHEMA shop;
CREATE TABLE shop.stock (item int, since timestamptz);
"""


class Base(DeclarativeBase):
    """What is mapped."""


class Item(Base):
    """A row of `items`; what tells rows apart is the client's affair."""

    __tablename__ = "items"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]
    price: Mapped[Decimal | None] = mapped_column(sa.Numeric(8, 2))


@pytest.fixture
def engine(served: Running) -> Iterator[sa.Engine]:
    engine = sa.create_engine(f"postgresql+psycopg://everview@{served.pg}/everview")
    with engine.begin() as connection:
        for statement in OBJECTS.split(";")[:-1]:
            connection.execute(sa.text(statement))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE MATERIALIZED VIEW totals AS SELECT name, sum(price) FROM items GROUP BY 1"))
    yield engine
    engine.dispose()


def test_reflection(engine: sa.Engine) -> None:
    found = sa.inspect(engine)
    assert found.get_table_names() == ["items"]
    assert found.get_table_names(schema="shop") == ["stock"]
    assert found.get_view_names() == ["cheap"]
    assert found.get_materialized_view_names() == ["totals"]
    assert {"public", "shop"} <= set(found.get_schema_names())
    columns = {each["name"]: each for each in found.get_columns("items")}
    assert list(columns) == ["id", "name", "price", "tags", "at"]
    types = [each["type"].compile(engine.dialect) for each in columns.values()]
    assert types == ["INTEGER", "TEXT", "NUMERIC(8, 2)", "TEXT[]", "mz_timestamp"]
    at = columns["at"]["type"]
    assert isinstance(at, postgresql.DOMAIN) and isinstance(at.data_type, sa.BIGINT)
    assert [each["nullable"] for each in columns.values()] == [False, True, True, True, True]
    assert (columns["name"]["default"], columns["price"]["comment"]) == ("'none'", "in euros")
    assert found.get_pk_constraint("items")["constrained_columns"] == []
    assert found.get_foreign_keys("items") == []
    assert found.get_unique_constraints("items") == [] and found.get_check_constraints("items") == []
    assert found.get_table_comment("items") == {"text": "what is sold"}
    indexes = {each["name"]: each for each in found.get_indexes("items")}
    assert indexes["items_id"]["column_names"] == ["id", "name"] and not indexes["items_id"]["unique"]
    assert indexes["items_upper"]["expressions"] == ["id", "upper(name)"]
    assert "price < 10" in found.get_view_definition("cheap")
    assert "sum(price)" in found.get_view_definition("totals")
    assert found.has_table("items") and not found.has_table("nothing") and found.has_table("stock", schema="shop")


def test_tables_from_reflection(engine: sa.Engine) -> None:
    table = sa.Table("items", sa.MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(table), [{"id": 1, "name": "pen", "price": Decimal("1.50"), "tags": ["a", "b"]}])
    everything = sa.MetaData()
    everything.reflect(engine, views=True)
    assert set(everything.tables) == {"items", "cheap", "totals"}
    with engine.connect() as connection:
        assert connection.execute(sa.select(everything.tables["totals"])).all() == [("pen", Decimal("1.50"))]
        assert connection.execute(sa.select(table.c.tags)).scalar_one() == ["a", "b"]


def test_a_mapping(engine: sa.Engine) -> None:
    with Session(engine) as session:
        session.add_all([Item(id=1, name="pen", price=Decimal("1.50")), Item(id=2, name="atlas")])
        session.commit()
    with engine.begin() as connection:
        connection.execute(sa.insert(Item), {"id": 3, "name": "cup"})
        with connection.begin_nested() as nested:
            connection.execute(sa.insert(Item), {"id": 4, "name": "gone"})
            nested.rollback()
    with Session(engine) as session:
        assert session.scalars(sa.select(Item.name).order_by(Item.id)).all() == ["pen", "atlas", "cup"]
        session.get_one(Item, 1).price = Decimal(2)
        session.commit()  # UPDATE and DELETE read, and a transaction reads before it writes
        session.delete(session.get_one(Item, 3))
        session.commit()
    with Session(engine) as session:
        assert session.execute(sa.select(Item.id, Item.price).order_by(Item.id)).all() == [
            (1, Decimal("2.00")),
            (2, None),
        ]


def test_definitions_in_transactions(engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    first = sa.Table("first", metadata, sa.Column("a", sa.Integer, nullable=False), sa.Column("b", sa.Text))
    sa.Index("first_a", first.c.a)
    sa.Table("second", metadata, sa.Column("c", sa.DateTime(timezone=True)))
    with pytest.raises(ZeroDivisionError), engine.begin() as connection:
        metadata.create_all(connection)
        raise ZeroDivisionError
    assert not sa.inspect(engine).has_table("first")
    metadata.create_all(engine)
    assert [each["name"] for each in sa.inspect(engine).get_indexes("first")] == ["first_a"]
    metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == ["items"]


def test_migrations(engine: sa.Engine) -> None:
    """What Alembic sends, with `version_table_pk=False`: definitions and the version's row in one transaction."""
    metadata = sa.MetaData()
    version = sa.Table("alembic_version", metadata, sa.Column("version_num", sa.String(32), nullable=False))
    account = sa.Table("account", metadata, sa.Column("id", sa.Integer, nullable=False), sa.Column("name", sa.String))
    with engine.begin() as connection:
        assert not sa.inspect(connection).has_table("alembic_version")
        version.create(connection)
        account.create(connection)
        connection.execute(version.insert().values(version_num=sa.literal_column("'one'")))
        connection.execute(account.insert(), [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    change = sa.update(version).values(version_num=sa.literal_column("'two'"))
    with engine.begin() as connection:
        assert connection.execute(sa.select(version.c.version_num)).scalars().all() == ["one"]
        connection.execute(sa.text("CREATE INDEX account_id ON account (id)"))
        connection.execute(sa.text("ALTER TABLE account RENAME TO accounts"))
        assert connection.execute(change.where(version.c.version_num == sa.literal_column("'one'"))).rowcount == 1
    with pytest.raises(ZeroDivisionError), engine.begin() as connection:
        sa.Table("lost", metadata, sa.Column("a", sa.Integer)).create(connection)
        assert connection.execute(sa.delete(version)).rowcount == 1
        raise ZeroDivisionError
    with engine.connect() as connection:
        assert connection.execute(sa.select(version.c.version_num)).scalars().all() == ["two"]
        assert sorted(sa.inspect(connection).get_table_names()) == ["accounts", "alembic_version", "items"]
        assert connection.execute(sa.text("SELECT name FROM accounts WHERE id = 2")).scalars().all() == ["b"]
