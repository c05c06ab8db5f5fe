"""What each kind of auxiliary relation says of itself, and that each has a maintainer."""

from pathlib import Path
from typing import get_args

import pytest

from squallpy.base.index_order import Order
from squallpy.program.auxiliary.adjacent_pairs import AdjacentPairs
from squallpy.program.auxiliary.first_rows import FirstRowsOfGroups
from squallpy.program.auxiliary.fixpoint import Fixpoint
from squallpy.program.auxiliary.groups import Groups
from squallpy.program.auxiliary.kind import AuxiliaryKind, GroupIndex
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.auxiliary.range_extreme_spans import RangeExtremeSpans
from squallpy.program.auxiliary.relation import AnyAuxiliaryKind, AuxiliaryRelation
from squallpy.program.auxiliary.session_rows import SessionRows
from squallpy.program.auxiliary.skyline import Skyline
from squallpy.program.auxiliary.threshold_intervals import ThresholdIntervals
from squallpy.program.auxiliary.window_rows import WindowRows
from squallpy.runtime.auxiliary.maintainer_registry import maintainer_of
from tests.maintain.test_trigger_program import program

STREAMS = """
CREATE STREAM trades (s INT NOT NULL, time INT NOT NULL, price INT, v VARCHAR) USING csv OPTIONS (path 't');
CREATE STREAM quotes (s INT NOT NULL, time INT NOT NULL, bid INT NOT NULL) USING csv OPTIONS (path 'q');
CREATE STREAM clicks (a INT, ts TIMESTAMP) USING csv OPTIONS (path 'c') TIMESTAMP BY ts;
"""
VALUE = "SELECT t.price, q.x FROM trades t, (SELECT s, {} AS x FROM quotes GROUP BY s) q WHERE t.s = q.s"
ASKED = "SELECT t.price, (SELECT {} FROM quotes q WHERE q.s = t.s AND q.time <= t.time {}) FROM trades t"
BOUNDED = "SELECT SUM(t.bid) FROM quotes t WHERE 10 > (SELECT SUM(u.bid) FROM quotes u WHERE u.time > t.time {})"
FIRST = "SELECT price FROM trades QUALIFY ROW_NUMBER() OVER (PARTITION BY s ORDER BY {}) <= 3"
SPAN = ASKED.format("MAX(q.bid)", "AND q.time > t.time - 60")


def relation(kind: type[AuxiliaryKind], query: str) -> AuxiliaryRelation:
    """The innermost auxiliary relation of a kind that a query has."""
    return next(aux for aux in program(query, STREAMS).auxiliary if isinstance(aux.kind, kind))


@pytest.mark.parametrize(
    ("kind", "query", "key", "index", "cost", "whole"),
    [
        (Groups, VALUE.format("COUNT(*)"), ("s",), GroupIndex(), "O(1)", [0]),
        (Groups, VALUE.format("MAX(bid)"), ("s",), GroupIndex((0,), Order((0, 1), 1)), "O(log n)", [0]),
        (Groups, VALUE.format("BIT_AND(bid)"), ("s",), GroupIndex((0,), is_sliced=True), "O(slice)", [0]),
        (
            ThresholdIntervals, BOUNDED.format(""), None,
            GroupIndex((), Order((0,), 0, descending=True, extents=True)), "O(log n)", [],
        ),
        (
            ThresholdIntervals, BOUNDED.format("AND u.s = t.s"), None,
            GroupIndex((0,), Order((0, 1), 1, descending=True, extents=True)), "O(log n)", [0],
        ),
        (WindowRows, "SELECT a FROM clicks RANGE 5 SEC", None, GroupIndex(order=Order((1, 0), 0)), "O(log n)", [0, 1]),
        (
            AdjacentPairs, ASKED.format("MAX(q.time)", ""), ("k1", "value"),
            GroupIndex((0,), Order((0, 1), 1)), "O(log n)", [0],
        ),
        (
            Skyline, ASKED.format("MAX(q.bid)", ""), ("k1", "at"),
            GroupIndex((0,), Order((0, 1, 2), 1)), "O(log n)", [0],
        ),
        (
            SessionRows, "SELECT a FROM clicks GROUP BY a, SESSION_WINDOW(ts, '5 seconds')", ("a", "start"),
            GroupIndex((0,), Order((0, 1), 1)), "O(log n)", [0],
        ),
        (
            FirstRowsOfGroups, FIRST.format("time DESC"), ("s", "number"),
            GroupIndex((0,), Order((0, 1, 2), 1, descending=True)), "O(log n)", [0],
        ),
        (FirstRowsOfGroups, FIRST.format("v"), ("s", "number"), GroupIndex((0,), is_sliced=True), "O(slice)", [0]),
        (
            Fixpoint, "WITH RECURSIVE r AS (SELECT s, time FROM trades UNION SELECT r.s, q.time FROM r JOIN quotes q "
            "ON r.time = q.s) SELECT s FROM r", None, GroupIndex(), "O(slice)", [],
        ),
        (RangeExtremeSpans, SPAN, ("k1", "at"), GroupIndex((0,), Order((0, 1, 2), 2)), "O(log n)", [0]),
    ],
)  # fmt: skip
def test_key_index_cost_and_placement(
    kind: type[AuxiliaryKind], query: str, key: tuple[str, ...] | None, index: GroupIndex, cost: str, whole: list[int]
) -> None:
    """`whole`: by which keys of the view it may be partitioned."""
    aux = relation(kind, query)
    keys, output = aux.materialised.variables, aux.output.with_lanes(aux.materialised.picks)
    assert (aux.unique_key, aux.kind.index(keys, output), aux.kind.cost(keys, output)) == (key, index, cost)
    assert sorted(aux.keys_of_whole_groups) == whole


def test_what_has_no_groups_is_indivisible() -> None:
    assert relation(ThresholdIntervals, BOUNDED.format("")).is_indivisible
    assert not relation(ThresholdIntervals, BOUNDED.format("AND u.s = t.s")).is_indivisible


def test_a_bound_finds_a_pair_if_its_neighbour_is_not_known() -> None:
    kind = relation(AdjacentPairs, ASKED.format("MAX(q.time)", "")).kind
    assert isinstance(kind, AdjacentPairs)
    s, value, other = relation(Skyline, ASKED.format("MAX(q.bid)", "")).materialised.variables
    search = kind.search({s: 0, kind.value: 1, kind.other: 2})
    assert search.finds((s, value, other), [value, other], value, (False, True))
    assert not search.finds((s, value, other), [value, other], value, (True, True))
    assert not search.finds((s, value, other), [s, value, other], value, (False, True))
    assert not search.finds((s, value, other), [value], value, (False, True))


def test_two_bounds_find_a_span_if_all_else_is_not_known() -> None:
    aux = relation(RangeExtremeSpans, SPAN)
    kind = aux.kind
    assert isinstance(kind, RangeExtremeSpans)
    s, x, value = variables = aux.materialised.variables
    search = kind.search({s: 0, kind.x: 1, kind.value: 2, kind.before: 3, kind.behind: 4})
    fields = (*variables, kind.before, kind.behind)
    assert search.finds(fields, fields[1:], x, (True, True))
    assert not search.finds(fields, fields[1:], x, (False, True))
    assert not search.finds(fields, fields[1:], value, (True, True))
    assert not search.finds(fields, fields[1:4], x, (True, True))


def test_each_kind_has_a_maintainer_in_a_file_of_its_name() -> None:
    kinds = get_args(AnyAuxiliaryKind)
    for kind in kinds:
        maintainer = maintainer_of(object.__new__(kind))
        assert maintainer.__module__.rpartition(".")[2] == kind.__module__.rpartition(".")[2]
    assert {kind.__name__ for kind in AuxiliaryKind.__subclasses__()} == {kind.__name__ for kind in kinds}


def test_only_files_of_kinds_and_passes_name_a_kind() -> None:
    """A new kind touches its two files, its registries and the pass that makes it."""
    lowered = (
        FirstRowsOfGroups,
        Fixpoint,
        Groups,
        ModelRows,
        SessionRows,
        WindowRows,
    )  # which operators of plans become
    names = [kind.__name__ for kind in get_args(AnyAuxiliaryKind) if kind not in lowered]
    package = Path(__file__).parents[2] / "squallpy"
    for path in package.rglob("*.py"):
        if not {"auxiliary", "optimizer"} & {*path.relative_to(package).parts}:
            assert not [name for name in names if name in path.read_text()], path
