"""TPC-H data in miniature: a few hundred rows in which every query finds something.

The benchmark's own generator makes predicates selective. Here the domains are small and lean towards the values that
the queries ask for, so that a hundred orders exercise all of them.
"""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = [("FRANCE", 3), ("GERMANY", 3), ("BRAZIL", 1), ("CANADA", 1), ("SAUDI ARABIA", 4), ("INDIA", 2), ("CHINA", 2)]
TYPES = [
    "ECONOMY ANODIZED STEEL",
    "LARGE BRUSHED BRASS",
    "PROMO POLISHED COPPER",
    "MEDIUM POLISHED TIN",
    "SMALL PLATED BRASS",
]
BRANDS = ["Brand#12", "Brand#23", "Brand#34", "Brand#45"]
CONTAINERS = ["SM CASE", "SM BOX", "MED BOX", "MED BAG", "LG CASE", "LG BOX"]
SEGMENTS = ["BUILDING", "AUTOMOBILE", "MACHINERY"]
MODES = ["MAIL", "SHIP", "AIR", "AIR REG", "TRUCK"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
COLOURS = ["green", "forest", "blue", "almond"]


def money(rng: random.Random, low: int, high: int) -> Decimal:
    """An amount between two whole amounts."""
    return Decimal(rng.randint(low * 100, high * 100)).scaleb(-2)


def date(rng: random.Random, first: datetime.date, days: int) -> datetime.date:
    """A day within so many days."""
    return first + datetime.timedelta(days=rng.randrange(days))


def generate(rng: random.Random, orders: int = 120) -> dict[str, list[Row]]:
    """All tables."""
    suppliers, customers, parts = 12, 24, 16
    data: dict[str, list[Row]] = {
        "region": [(key, name, "") for key, name in enumerate(REGIONS)],
        "nation": [(key, name, region, "") for key, (name, region) in enumerate(NATIONS)],
        "supplier": [supplier(rng, key) for key in range(1, suppliers + 1)],
        "customer": [customer(rng, key) for key in range(1, customers + 1)],
        "part": [part(rng, key) for key in range(1, parts + 1)],
        "partsupp": [],
        "orders": [],
        "lineitem": [],
    }
    for key in range(1, parts + 1):
        for chosen in rng.sample(range(1, suppliers + 1), 4):
            data["partsupp"].append((key, chosen, rng.randint(1, 9999), money(rng, 1, 1000), ""))
    for key in range(1, orders + 1):
        placed, lines = order(rng, key, customers, data["partsupp"])
        data["orders"].append(placed)
        data["lineitem"] += lines
    return data


def supplier(rng: random.Random, key: int) -> Row:
    comment = rng.choice(["", "Customer slow Complaints", "quiet"])
    nation = rng.randrange(len(NATIONS))
    return (key, f"Supplier#{key:09d}", f"street {key}", nation, f"{10 + nation}-555", money(rng, -999, 9999), comment)


def customer(rng: random.Random, key: int) -> Row:
    phone = f"{rng.choice([13, 31, 23, 29, 11])}-555-{key:04d}"
    nation, segment = rng.randrange(len(NATIONS)), rng.choice(SEGMENTS)
    return (key, f"Customer#{key:09d}", f"road {key}", nation, phone, money(rng, -999, 9999), segment, "")


def part(rng: random.Random, key: int) -> Row:
    name = " ".join(rng.sample(COLOURS, 2))
    size, price = rng.choice([1, 5, 9, 14, 15, 23, 45]), money(rng, 900, 2000)
    maker, brand, kind, box = "Manufacturer#1", rng.choice(BRANDS), rng.choice(TYPES), rng.choice(CONTAINERS)
    return (key, name, maker, brand, kind, size, box, price, "")


def order(rng: random.Random, key: int, customers: int, offers: list[Row]) -> tuple[Row, list[Row]]:
    """An order and its lines."""
    placed = date(rng, datetime.date(1992, 1, 1), 2400)
    lines = []
    for number in range(1, rng.randint(2, 8)):
        offer = rng.choice(offers)
        shipped = date(rng, placed + datetime.timedelta(days=1), 120)
        agreed = date(rng, placed + datetime.timedelta(days=30), 60)
        received = date(rng, shipped + datetime.timedelta(days=1), 30)
        quantity = Decimal(rng.choice([5, 10, 24, 48, 50])).quantize(Decimal("0.01"))
        price = (quantity * money(rng, 900, 2000)).quantize(Decimal("0.01"))
        discount, tax = money(rng, 0, 0) + Decimal(rng.randint(0, 10)).scaleb(-2), Decimal(rng.randint(0, 8)).scaleb(-2)
        flag = rng.choice("RAN")
        status = "O" if shipped > datetime.date(1995, 6, 17) else "F"
        how = rng.choice(["DELIVER IN PERSON", "NONE", "COLLECT COD"])
        dates = (shipped, agreed, received)
        lines.append(
            (
                key,
                offer[0],
                offer[1],
                number,
                quantity,
                price,
                discount,
                tax,
                flag,
                status,
                *dates,
                how,
                rng.choice(MODES),
                "",
            )
        )
    total = sum((line[5] for line in lines), Decimal("0.00"))
    status = rng.choice("OFP")
    comment = rng.choice(["", "special packages requests", "ordinary"])
    buyer = rng.randint(1, customers - 6)  # some customers never buy
    return (key, buyer, status, total, placed, rng.choice(PRIORITIES), "Clerk#1", 0, comment), lines
