"""The greatest and the least value before and behind each row, of many that come and go, beside a search of all."""

import random
from collections.abc import Callable
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from squallpy.testing.compare_rows import rows_of
from squallpy.testing.engines import VolatileEngine
from squallpy.testing.oracle import MULT

SCRIPT = """
CREATE STREAM r (k INT, x {type}, v {type}) USING csv OPTIONS (path 'r', op '__op');
CREATE STREAM s (k INT, x {type}) USING csv OPTIONS (path 's', op '__op');
SELECT s.k, s.x, (SELECT {function}(r.v) FROM r WHERE r.k = s.k AND r.x {op} s.x) AS found FROM s;
"""
OPERATORS = {"<": lt, "<=": le, ">": gt, ">=": ge}


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("function", [max, min])
@pytest.mark.parametrize("spread", [6, 400])
def property_the_best_value_of_a_side(op: str, function: Callable[..., Any], spread: int, tmp_path: Path) -> None:
    draw = random.Random(f"{op} {function.__name__} {spread}")
    type, kind = draw.choice([("BIGINT", int), ("DOUBLE", float)])
    engine, there = VolatileEngine(), []
    engine.start(SCRIPT.format(type=type, function=function.__name__, op=op), tmp_path, {})
    asked = [(k, kind(x)) for k in (1, 2) for x in range(-1, spread + 1, max(1, spread // 25))]
    engine.push({"s": batch([(*row, 1) for row in asked], ("k", "x"))})
    for _ in range(25):
        came = [(draw.randint(1, 2), kind(draw.randrange(spread)), kind(draw.randrange(spread))) for _ in range(12)]
        went = draw.sample(there, draw.randint(0, min(len(there), 14)))
        for row in went:
            there.remove(row)
        there += came
        changes = [(*row, 1) for row in came] + [(*row, -1) for row in went]
        engine.push({"r": batch(draw.sample(changes, len(changes)), ("k", "x", "v"))})
        values = [[v for g, y, v in there if g == k and OPERATORS[op](y, x)] for k, x in asked]
        wanted = sorted((*row, function(some, default=None)) for row, some in zip(asked, values, strict=True))
        assert sorted(map(tuple, rows_of(engine.result())), key=lambda row: row[:2]) == wanted


def batch(rows: list, names: tuple[str, ...]) -> pa.Table:
    """Rows, each with how often it came."""
    return pa.table(dict(zip((*names, MULT), zip(*rows, strict=True), strict=True)))
