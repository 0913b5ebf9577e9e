"""The tables of TPC-H."""

from __future__ import annotations

from everview.compute.ir.types import DATE, INT4, TEXT, SqlType, numeric

MONEY = numeric(15, 2)

TABLES: dict[str, dict[str, SqlType]] = {
    "region": {"r_regionkey": INT4, "r_name": TEXT, "r_comment": TEXT},
    "nation": {"n_nationkey": INT4, "n_name": TEXT, "n_regionkey": INT4, "n_comment": TEXT},
    "supplier": {
        "s_suppkey": INT4,
        "s_name": TEXT,
        "s_address": TEXT,
        "s_nationkey": INT4,
        "s_phone": TEXT,
        "s_acctbal": MONEY,
        "s_comment": TEXT,
    },
    "customer": {
        "c_custkey": INT4,
        "c_name": TEXT,
        "c_address": TEXT,
        "c_nationkey": INT4,
        "c_phone": TEXT,
        "c_acctbal": MONEY,
        "c_mktsegment": TEXT,
        "c_comment": TEXT,
    },
    "part": {
        "p_partkey": INT4,
        "p_name": TEXT,
        "p_mfgr": TEXT,
        "p_brand": TEXT,
        "p_type": TEXT,
        "p_size": INT4,
        "p_container": TEXT,
        "p_retailprice": MONEY,
        "p_comment": TEXT,
    },
    "partsupp": {
        "ps_partkey": INT4,
        "ps_suppkey": INT4,
        "ps_availqty": INT4,
        "ps_supplycost": MONEY,
        "ps_comment": TEXT,
    },
    "orders": {
        "o_orderkey": INT4,
        "o_custkey": INT4,
        "o_orderstatus": TEXT,
        "o_totalprice": MONEY,
        "o_orderdate": DATE,
        "o_orderpriority": TEXT,
        "o_clerk": TEXT,
        "o_shippriority": INT4,
        "o_comment": TEXT,
    },
    "lineitem": {
        "l_orderkey": INT4,
        "l_partkey": INT4,
        "l_suppkey": INT4,
        "l_linenumber": INT4,
        "l_quantity": MONEY,
        "l_extendedprice": MONEY,
        "l_discount": MONEY,
        "l_tax": MONEY,
        "l_returnflag": TEXT,
        "l_linestatus": TEXT,
        "l_shipdate": DATE,
        "l_commitdate": DATE,
        "l_receiptdate": DATE,
        "l_shipinstruct": TEXT,
        "l_shipmode": TEXT,
        "l_comment": TEXT,
    },
}
