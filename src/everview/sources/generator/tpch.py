"""TPCH: the eight tables of the benchmark at a scale, all at the start; then at each tick one order goes and one comes.

Keys, proportions and ranges of values follow the benchmark; texts are short. It is a load, and no official data.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random

from everview.compute.ir.types import DATE, INT4, INT8, TEXT, SqlType, numeric
from everview.sources.contract import Table
from everview.sources.generator.contract import Changes, Row, rng

MONEY = numeric(15, 2)
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    *(("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3)),
    *(("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4)),
    *(("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3)),
    *(("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1)),
)
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
COLORS = ("almond", "azure", "beige", "coral", "forest", "green", "ivory", "lace", "navy", "olive", "plum", "rose")
TYPES = ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
FINISHES = ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
METALS = ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
CONTAINERS = ("SM CASE", "SM BOX", "MED BAG", "MED BOX", "LG CASE", "LG DRUM", "JUMBO PACK", "WRAP JAR")
FIRST_DAY, DAYS = date(1992, 1, 1), 2_405
CURRENT = date(1995, 6, 17)


def _table(name: str, text: str) -> Table:
    kinds: dict[str, SqlType] = {"int": INT4, "key": INT8, "text": TEXT, "money": MONEY, "date": DATE}
    pairs = [each.split(" ") for each in text.split(", ")]
    return Table.of(name, *((column, kinds[kind]) for column, kind in pairs))


TABLES = (
    _table("region", "r_regionkey int, r_name text, r_comment text"),
    _table("nation", "n_nationkey int, n_name text, n_regionkey int, n_comment text"),
    _table("supplier", "s_suppkey key, s_name text, s_address text, s_nationkey int, s_phone text, s_acctbal money,"
           " s_comment text"),
    _table("part", "p_partkey key, p_name text, p_mfgr text, p_brand text, p_type text, p_size int, p_container text,"
           " p_retailprice money, p_comment text"),
    _table("partsupp", "ps_partkey key, ps_suppkey key, ps_availqty int, ps_supplycost money, ps_comment text"),
    _table("customer", "c_custkey key, c_name text, c_address text, c_nationkey int, c_phone text, c_acctbal money,"
           " c_mktsegment text, c_comment text"),
    _table("orders", "o_orderkey key, o_custkey key, o_orderstatus text, o_totalprice money, o_orderdate date,"
           " o_orderpriority text, o_clerk text, o_shippriority int, o_comment text"),
    _table("lineitem", "l_orderkey key, l_partkey key, l_suppkey key, l_linenumber int, l_quantity money,"
           " l_extendedprice money, l_discount money, l_tax money, l_returnflag text, l_linestatus text,"
           " l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct text, l_shipmode text,"
           " l_comment text"),
)  # fmt: skip


def _cents(value: int) -> Decimal:
    return Decimal(value).scaleb(-2)


@dataclass(frozen=True, slots=True)
class Tpch:
    """The tables at a scale factor."""

    seed: int
    scale: float = 0.01

    @property
    def tables(self) -> tuple[Table, ...]:
        """The eight tables."""
        return TABLES

    def _count(self, at_one: int) -> int:
        return max(1, round(at_one * self.scale))

    def changes(self, tick: int) -> Changes:
        """Everything at the start; then one order for another."""
        orders = self._count(1_500_000)
        if tick == 0:
            return self._beginning(orders)
        old, new = self._order(tick), self._order(orders + tick)
        lines = [(line, -1) for line in old[1]] + [(line, 1) for line in new[1]]
        return {"orders": [(old[0], -1), (new[0], 1)], "lineitem": lines}

    def _beginning(self, orders: int) -> Changes:
        found: dict[str, list[tuple[Row, int]]] = {table.name: [] for table in TABLES}
        found["region"] = [((key, name, ""), 1) for key, name in enumerate(REGIONS)]
        found["nation"] = [((key, name, region, ""), 1) for key, (name, region) in enumerate(NATIONS)]
        found["supplier"] = [(self._supplier(key), 1) for key in range(1, self._count(10_000) + 1)]
        for key in range(1, self._count(200_000) + 1):
            found["part"].append((self._part(key), 1))
            found["partsupp"] += [(row, 1) for row in self._partsupps(key)]
        found["customer"] = [(self._customer(key), 1) for key in range(1, self._count(150_000) + 1)]
        for key in range(1, orders + 1):
            order, lines = self._order(key)
            found["orders"].append((order, 1))
            found["lineitem"] += [(line, 1) for line in lines]
        return found

    def _phone(self, chance: Random, nation: int) -> str:
        return f"{nation + 10}-{chance.randint(100, 999)}-{chance.randint(100, 999)}-{chance.randint(1000, 9999)}"

    def _supplier(self, key: int) -> Row:
        chance = rng(self.seed, "supplier", key)
        nation = chance.randrange(len(NATIONS))
        balance = _cents(chance.randint(-99_999, 999_999))
        return (key, f"Supplier#{key:09d}", f"{key} Main Street", nation, self._phone(chance, nation), balance, "")

    def _customer(self, key: int) -> Row:
        chance = rng(self.seed, "customer", key)
        nation = chance.randrange(len(NATIONS))
        phone, balance = self._phone(chance, nation), _cents(chance.randint(-99_999, 999_999))
        return (key, f"Customer#{key:09d}", f"{key} Side Street", nation, phone, balance, chance.choice(SEGMENTS), "")

    def _price(self, part: int) -> int:
        return 90_000 + (part // 10) % 20_001 + 100 * (part % 1_000)

    def _part(self, key: int) -> Row:
        chance = rng(self.seed, "part", key)
        maker = chance.randint(1, 5)
        kind = f"{chance.choice(TYPES)} {chance.choice(FINISHES)} {chance.choice(METALS)}"
        return (
            *(key, " ".join(chance.sample(COLORS, 3)), f"Manufacturer#{maker}", f"Brand#{maker}{chance.randint(1, 5)}"),
            *(kind, chance.randint(1, 50), chance.choice(CONTAINERS), _cents(self._price(key)), ""),
        )

    def _suppliers(self, part: int) -> list[int]:
        """The suppliers of a part, four if there are so many."""
        count = self._count(10_000)
        return list(dict.fromkeys((part + number * max(1, count // 4)) % count + 1 for number in range(4)))

    def _partsupps(self, part: int) -> list[Row]:
        rows: list[Row] = []
        for supplier in self._suppliers(part):
            chance = rng(self.seed, "partsupp", part, supplier)
            rows.append((part, supplier, chance.randint(1, 9_999), _cents(chance.randint(100, 100_000)), ""))
        return rows

    def _order(self, key: int) -> tuple[Row, list[Row]]:
        chance = rng(self.seed, "order", key)
        day = FIRST_DAY + timedelta(days=chance.randrange(DAYS - 121))
        lines = [self._line(chance, key, number, day) for number in range(1, chance.randint(1, 7) + 1)]
        statuses = {line[9] for line in lines}
        status = statuses.pop() if len(statuses) == 1 else "P"
        total = sum((line[5] * (1 - line[6]) * (1 + line[7]) for line in lines), Decimal(0)).quantize(Decimal("0.01"))
        customer, clerk = chance.randint(1, self._count(150_000)), f"Clerk#{chance.randint(1, 1000):09d}"
        return (key, customer, status, total, day, chance.choice(PRIORITIES), clerk, 0, ""), lines

    def _line(self, chance: Random, order: int, number: int, day: date) -> Row:
        part, quantity = chance.randint(1, self._count(200_000)), chance.randint(1, 50)
        supplier = chance.choice(self._suppliers(part))
        shipped = day + timedelta(days=chance.randint(1, 121))
        committed = day + timedelta(days=chance.randint(30, 90))
        received = shipped + timedelta(days=chance.randint(1, 30))
        returned = chance.choice("RA") if received <= CURRENT else "N"
        return (
            *(order, part, supplier, number, _cents(quantity * 100), _cents(quantity * self._price(part))),
            *(_cents(chance.randint(0, 10)), _cents(chance.randint(0, 8)), returned),
            *("F" if shipped <= CURRENT else "O", shipped, committed, received),
            *(chance.choice(INSTRUCTIONS), chance.choice(MODES), ""),
        )
