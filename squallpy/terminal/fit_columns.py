"""Columns of a result that fit the width of a terminal: long texts are cut, then columns are left out.

k        name                total            k  name          total
───────  ──────────────────  ─────     →      ─  ──────────…  ─────
"""

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

import pyarrow as pa

from squallpy.logical.expressions import Column, columns
from squallpy.logical.nodes import Aggregate, GroupingSets, Node, Project
from squallpy.runtime.formats.text_columns import is_number
from squallpy.terminal.text_table import shown, widest

_GAP = 2  # between two columns
_LEAST = 10  # texts and names are not cut to less


def rank_columns(plan: Node, schema: pa.Schema, sorted_by: Sequence[int]) -> list[int]:
    """Rank printed columns: keys and measures in turn, those of `sorted_by` first; then the rest.

    SELECT k, name, day, SUM(a) AS a, SUM(b) AS b … ORDER BY b   →   [k, b, name, a, day]
    """
    keys, measures = _roles(plan)
    places = sorted(range(len(schema)), key=lambda place: sorted_by.index(place) if place in sorted_by else len(schema))
    output = [plan.output[place] for place in range(len(schema))]
    if not measures:  # rows, or a query around aggregates: numbers are taken for measures
        measures = {column for column, kind in zip(output, schema.types, strict=True) if is_number(kind)}
        keys = set(output) - measures
    by_role = ([place for place in places if output[place] in role] for role in (keys, measures))
    turns = [place for place in chain.from_iterable(zip_longest(*by_role)) if place is not None]
    return list(dict.fromkeys([*turns, *places]))


def _roles(node: Node) -> tuple[set[Column], set[Column]]:
    """Find the columns of a node computed from keys of the aggregate below, and those computed from its aggregates."""
    match node:
        case Aggregate() | GroupingSets():
            return {column for column, _ in node.keys}, {column for column, _ in node.aggs}
        case Project():
            keys, measures = _roles(node.child)
            measured = {column for column, expr in node.items if columns(expr) & measures}
            return {column for column, expr in node.items if columns(expr) & keys} - measured, measured
    return _roles(node.inputs[0]) if len(node.inputs) == 1 else (set(), set())


def fit(table: pa.Table, width: int, ranked: Iterable[int]) -> pa.Table:
    """Cut texts and names, and leave out the columns that come last in `ranked`, until rows take at most `width`.

    NB: a cut number or date would be another one; so these are shown whole, or not at all. One column always is.
    """
    cells, names = [shown(column) for column in table.columns], shown(pa.array(table.column_names, pa.string()))
    sizes = [
        (widest(names.slice(place, 1)), widest(cell), pa.types.is_string(kind))
        for place, (cell, kind) in enumerate(zip(cells, table.schema.types, strict=True))
    ]

    def needed(place: int, most: int) -> int:
        name, cell, is_text = sizes[place]
        return max(min(name, most), min(cell, most) if is_text else cell) + _GAP

    chosen: list[int] = []
    room = width + _GAP
    for place in ranked:
        if not chosen or needed(place, _LEAST) <= room:
            chosen.append(place)
            room -= needed(place, _LEAST)
    fits = (m for m in range(width, _LEAST, -1) if sum(needed(place, m) for place in chosen) <= width + _GAP)
    most = next(fits, _LEAST)
    chosen.sort()
    heads = [_cut(names[place].as_py(), needed(place, most) - _GAP) for place in chosen]
    kept = [
        pa.array([_cut(cell, most) for cell in cells[place].to_pylist()], pa.string())
        if sizes[place][2]
        else table.column(place)
        for place in chosen
    ]
    return pa.Table.from_arrays(kept, names=heads)


def _cut(text: str, width: int) -> str:
    from rich.text import Text  # NB: a run that prints no table does not need it

    cut = Text(text)
    cut.truncate(width, overflow="ellipsis")
    return cut.plain
