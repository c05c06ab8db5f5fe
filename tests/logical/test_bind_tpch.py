"""The flat queries of TPC-H bind, with the types that their answers have."""

import re
from pathlib import Path

import pytest

from squallpy.logical.bind import Script, compile_script
from squallpy.logical.explain_text import show

TEXT = (Path(__file__).parent / "tpch.sql").read_text()
NUMBERS = [int(number) for number in re.findall(r"^-- q(\d+)$", TEXT, re.M)]

TYPES = {
    1: "VARCHAR VARCHAR DECIMAL(38,2) DECIMAL(38,2) DECIMAL(38,4) DECIMAL(38,6) DOUBLE DOUBLE DOUBLE BIGINT",
    3: "BIGINT DECIMAL(38,4) DATE INT",
    5: "VARCHAR DECIMAL(38,4)",
    6: "DECIMAL(38,4)",
    10: "BIGINT VARCHAR DECIMAL(38,4) DECIMAL(15,2) VARCHAR VARCHAR VARCHAR VARCHAR",
    12: "VARCHAR BIGINT BIGINT",
    14: "DOUBLE",
    19: "DECIMAL(38,4)",
}


@pytest.fixture(scope="module")
def script() -> Script:
    return compile_script(TEXT, "tpch.sql", lambda _: ())


@pytest.mark.parametrize("number", TYPES)
def golden_types(script: Script, number: int) -> None:
    query = script.queries[NUMBERS.index(number)]
    assert " ".join(str(column.type) for column in query.plan.output) == TYPES[number]


def golden_q3(script: Script) -> None:
    assert show(script.queries[NUMBERS.index(3)].plan) == (
        "Limit 10\n"
        "  Sort revenue DESC, o_orderdate\n"
        "    Project l_orderkey, revenue := SUM(l_extendedprice * (1.00 - l_discount)), o_orderdate, o_shippriority\n"
        "      Aggregate by l_orderkey, o_orderdate, o_shippriority: SUM(l_extendedprice * (1.00 - l_discount))\n"
        "        Filter c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey"
        " AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'\n"
        "          Cross\n"
        "            Cross\n"
        "              Scan customer\n"
        "              Scan orders\n"
        "            Scan lineitem"
    )
