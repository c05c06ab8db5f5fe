"""The greatest and the least value between two bounds, of many that come and go, beside a search of all."""

import random
from collections.abc import Callable
from math import inf, isnan, nan
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from squallpy.testing.compare_rows import rows_of
from squallpy.testing.engines import PartitionedEngine, VolatileEngine
from squallpy.testing.oracle import MULT

SCRIPT = """
CREATE STREAM r (k INT, x {type}, v {type}) USING csv OPTIONS (path 'r', op '__op');
CREATE STREAM s (k INT, low {type}, high {type}) USING csv OPTIONS (path 's', op '__op');
SELECT s.k, s.low, s.high, (SELECT {function}(r.v) FROM r WHERE r.k = s.k AND r.x {above} s.low AND r.x {below} s.high)
  AS found FROM s;
"""
ENDS = {"BIGINT": (None, -(2**63) + 1, 2**63 - 1, 3), "DOUBLE": (None, nan, inf, -inf, -0.0)}


@pytest.mark.parametrize("bounds", [(">=", "<="), (">", "<"), (">", "<=")], ids=" ".join)
@pytest.mark.parametrize("function", [max, min])
@pytest.mark.parametrize("spread", [6, 400])
@pytest.mark.parametrize("engine", [VolatileEngine(), PartitionedEngine(2)], ids=lambda engine: type(engine).__name__)
def property_the_best_value_between_bounds(
    bounds: tuple, function: Callable[..., Any], spread: int, engine: VolatileEngine, tmp_path: Path
) -> None:
    above, below = bounds
    draw = random.Random(f"{bounds} {function.__name__} {spread}")
    type, kind = draw.choice([("BIGINT", int), ("DOUBLE", float)])
    engine.start(SCRIPT.format(type=type, function=function.__name__, above=above, below=below), tmp_path, {})
    there: list = []
    asked = sorted({(draw.randint(1, 2), *(kind(draw.randint(-1, spread)) for _ in "ab")) for _ in range(40)})
    engine.push({"s": batch([(*row, 1) for row in asked], ("k", "low", "high"))})
    for step in range(25):
        came = [(draw.randint(1, 2), at(draw, spread, kind), value(draw, spread, kind, ENDS[type])) for _ in range(12)]
        went = draw.sample(there, len(there) if step == 20 else draw.randint(0, min(len(there), 14)))
        for row in went:
            there.remove(row)
        there += came
        changes = [(*row, 1) for row in came] + [(*row, -1) for row in went]
        engine.push({"r": batch(draw.sample(changes, len(changes)), ("k", "x", "v"))})
        wanted = [(*row, best(function, within(there, row, above, below))) for row in asked]
        found = sorted(map(tuple, rows_of(engine.result())), key=lambda row: row[:3])
        assert list(map(str, found)) == list(map(str, wanted))


def at(draw: random.Random, spread: int, kind: type) -> float | None:
    return None if draw.random() < 0.03 else kind(draw.randrange(spread))


def value(draw: random.Random, spread: int, kind: type, ends: tuple) -> float | None:
    return draw.choice(ends) if draw.random() < 0.2 else kind(draw.randrange(spread // 2))


def within(there: list, row: tuple, above: str, below: str) -> list:
    (k, low, high), tests = row, {"<": lt, "<=": le, ">": gt, ">=": ge}
    rows = [(x, v) for g, x, v in there if g == k and x is not None and v is not None]
    return [v + 0 for x, v in rows if tests[above](x, low) and tests[below](x, high)]


def best(function: Callable[..., Any], values: list) -> float | None:
    """NaN is the greatest."""
    return function(values, key=lambda v: (isnan(v), v), default=None)


def batch(rows: list, names: tuple[str, ...]) -> pa.Table:
    """Rows, each with how often it came."""
    return pa.table(dict(zip((*names, MULT), zip(*rows, strict=True), strict=True)))
