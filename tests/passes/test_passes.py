"""Passes and rules: for each a query that it changes, run with it, without it and without optimizer on one ± stream."""

import re
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.catalog.relation import MULT
from squallpy.optimizer.pipeline import ALL, disabled_passes
from squallpy.testing import goldens
from squallpy.testing.compare_rows import difference
from squallpy.testing.engines import VolatileEngine

STREAMS = goldens.STREAMS.read_text()
VALUES = {"a": (0, 1, 2, 3, None), "b": (0, 1, None), "c": (True, False, None), "d": (0, 1, 2, None)}
VALUES |= {"t": (*range(0, 60_000_000, 1_000_000), None), "e": (0, 1, 2)}
Row = tuple[Any, ...]
VALUES |= {"x": (0, 1), "y": (0, 1, 2), "z": (0, 1, None), "k": (0, 1, 2), "l": (0, 1, None)}
FIELDS = {"r": "abc", "s": "bd", "w": "te", "u": "xy", "v": "yz", "p": "td", "k": "kl"}
KEYED = ("xy", "yz", "kl")  # fields of which the first is a PRIMARY KEY
QUERIES = {
    path.stem: path.read_text().split("\n\n")[0].split("\n", 1)[1] for path in sorted(goldens.PASSES.glob("*.txt"))
}


EVERY = [each for _, passes in ALL for each in passes]
REQUIRED = {each.name for each in EVERY if each.is_required}
OPTIONAL = {name for each in EVERY if not each.is_required for name in each.rules or (each.name,)}


def test_every_rule_is_here() -> None:
    assert QUERIES.keys() == OPTIONAL | REQUIRED


@pytest.mark.parametrize("rule", QUERIES)
def golden_pass(rule: str) -> None:
    """What a rule makes of its query is what its fixture says: `make plans` rewrites it."""
    text = (goldens.PASSES / f"{rule}.txt").read_text()
    assert "\n-- after\n" in text and goldens.pass_fixture(text) == text


@pytest.mark.parametrize("rule", QUERIES)
def differential_both_sides(rule: str, tmp_path: Path) -> None:
    switched_off = [VolatileEngine(passes=f"-{rule}")] if rule in OPTIONAL else []
    sides = [VolatileEngine(), *switched_off, VolatileEngine(optimizer=False)]
    for number, side in enumerate(sides):
        (tmp_path / str(number)).mkdir()
        side.start(f"{STREAMS} {QUERIES[rule]}", tmp_path / str(number), {})
    draw, stored = Random(rule), {name: list[Row]() for name in FIELDS}
    for batch in range(6):
        changes = {name: rows(draw, FIELDS[name], stored[name]) for name in FIELDS}
        optimised, *others = [side.push_all(changes) for side in sides]
        results, *other_results = [side.results() for side in sides]
        for other, other_result in zip(others, other_results, strict=True):
            assert not any(map(difference, optimised, other)), f"changes of batch {batch}"
            assert not any(map(difference, results, other_result)), f"after batch {batch}"


def rows(draw: Random, fields: str, stored: list[Row]) -> pa.Table:
    """Draw up to 20 changes of a stream, two inserts for each delete of a row that is `stored`."""
    changes: list[tuple[Row, int]] = []
    for _ in range(draw.randrange(20)):
        if stored and draw.randrange(3) == 0:
            changes.append((stored.pop(draw.randrange(len(stored))), -1))
            continue
        row = tuple(draw.choice(VALUES[f]) for f in fields)
        if fields not in KEYED or all(row[0] != other[0] for other in stored):
            changes.append((row, 1))
            stored.append(row)
    columns = {f: pa.array([row[i] for row, _ in changes], kind(f)) for i, f in enumerate(fields)}
    return pa.table({**columns, MULT: pa.array([sign for _, sign in changes], pa.int64())})


def kind(field: str) -> pa.DataType:
    return {"c": pa.bool_(), "t": pa.timestamp("us")}.get(field, pa.int64())


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ("-groupjon", 'unknown pass "groupjon", did you mean "groupjoin"?'),
        ("groupjoin", '"groupjoin" has no sign, -groupjoin switches it off'),
        ("-fold_case,-SCHEDULE", '"schedule" is required: '),
        ("-", 'unknown pass ""'),
    ],
)
def test_switches_that_name_no_optional_pass_are_refused(switches: str, message: str) -> None:
    with pytest.raises(SquallError, match=re.escape(message)):
        disabled_passes(switches)


def test_without_the_optimizer_required_passes_stay() -> None:
    names = {each.name for _, passes in ALL for each in passes}
    assert names - disabled_passes("", optimizer=False) == {
        e.name for _, passes in ALL for e in passes if e.is_required
    }
    assert disabled_passes("-Groupjoin, -fold_case") == {"groupjoin", "fold_case"}
