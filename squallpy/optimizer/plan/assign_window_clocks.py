"""Windows move with clocks: the largest time of any stream under the same clause, or the number of rows."""

from collections.abc import Iterator
from dataclasses import replace

from squallpy.base.types import BIGINT
from squallpy.catalog.relation import Field
from squallpy.catalog.window_spec import ARRIVAL, NOW, Clock
from squallpy.logical.expressions import Column
from squallpy.logical.nodes import Node, Project, Scan, Window, nodes, with_inputs


def assign_window_clocks(plan: Node, ids: Iterator[int], report_late: bool) -> Node:
    """Give each window the clocks of all streams under its clause, and number the rows where a window counts rows.

    Window ROWS 10 (Scan s(a, b))   →   Window ROWS 10 of __arrival (Scan s(a, b, __arrival))

    Args:
        ids: Ids for the columns of row numbers.
        report_late: Late rows are reported, or else only counted.
    """
    found, known = windows(plan), dict[int, Node]()
    if not found:
        return plan
    clocks: dict[int, set[Clock]] = {}
    for window in found:
        clocks.setdefault(window.spec.number, set()).update(window.spec.clocks)
    numbered = {clock.relation for window in found for clock in window.spec.clocks if clock.field == ARRIVAL}

    def number_rows(scan: Scan) -> Scan:
        """Add row numbers to a scan whose stream needs them; all scans of a stream read the same fields."""
        if scan.relation.name not in numbered:
            return scan
        fields = (*scan.relation.fields, Field(ARRIVAL, BIGINT, nullable=False))
        own = Column(next(ids), ARRIVAL, BIGINT, nullable=False)
        return Scan(replace(scan.relation, fields=fields), scan.alias, (*scan.columns, own))

    def rewritten(node: Node) -> Node:
        if id(node) not in known:
            known[id(node)] = replaced(node)
        return known[id(node)]

    def replaced(node: Node) -> Node:
        match node:
            case Scan():
                return _select(node.output, number_rows(node))
            case Window(Scan() as scan, spec, None):
                child = number_rows(scan)
                mine = replace(spec, number=0, report_late=report_late)
                return _select(node.output, Window(child, mine, child.columns[-1]))
            case Window(child, spec, time):
                mine = replace(
                    spec,
                    clocks=tuple(sorted(clocks[spec.number], key=_relation_of)),
                    number=0,
                    report_late=report_late and NOW not in spec.clocks,
                )
                return Window(rewritten(child), mine, time)
        return with_inputs(node, tuple(map(rewritten, node.inputs)))

    return rewritten(plan)


def _select(columns: tuple[Column, ...], node: Node) -> Node:
    """Select some columns of a node."""
    return node if node.output == columns else Project(node, tuple((c, c) for c in columns))


def _relation_of(clock: Clock) -> str:
    return clock.relation


def windows(plan: Node) -> list[Window]:
    """List the windows of a plan."""
    return [node for node in nodes(plan) if isinstance(node, Window)]
