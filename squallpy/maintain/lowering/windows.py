"""Windows: what of a logical plan has to be known of them before it is lowered, and what of their rows is kept.

Window ROWS 10 (Scan s(a, b))          →   Window ROWS 10 of __arrival (Scan s(a, b, __arrival))
N1(a, b, c, ts), of which a is read    →   N1(a, ts)

What is kept of bags is found along with it: of N1(a, b, c), of which a is read, N1(a).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from math import gcd

from squallpy.base.types import BIGINT, TIMESTAMP
from squallpy.catalog.relation import Field
from squallpy.catalog.stream_window import ARRIVAL, Clock, WindowSpec
from squallpy.logical.expressions import Call, Column, Expr, Literal
from squallpy.logical.nodes import Node, Project, Scan, Window, with_inputs
from squallpy.program.calculus import Assign
from squallpy.program.components import prune
from squallpy.program.program import Nest, View

_PANES = 1_000_000_000  # from here on, variables of panes


def timed(plan: Node, told: bool) -> Node:
    """The plan with the clocks of its windows, which are those of all streams under a clause, and with the numbers of
    rows where windows go by them; late rows are `told` or only counted."""
    found = list(windows(plan))
    if not found:
        return plan
    clocks: dict[int, set[Clock]] = {}
    for window in found:
        clocks.setdefault(window.spec.number, set()).update(window.spec.clocks)
    numbered = {clock.relation for window in found for clock in window.spec.clocks if clock.field == ARRIVAL}
    fresh = count(650_000_000)

    def counted(scan: Scan) -> Scan:
        """The scan with the numbers of rows, where they are asked for: all scans of a stream read the same fields."""
        if scan.relation.name not in numbered:
            return scan
        fields = (*scan.relation.fields, Field(ARRIVAL, BIGINT, nullable=False))
        own = Column(next(fresh), ARRIVAL, BIGINT, nullable=False)
        return Scan(replace(scan.relation, fields=fields), scan.alias, (*scan.columns, own))

    def rewritten(node: Node) -> Node:
        match node:
            case Scan():
                return _of(node.output, counted(node))
            case Window(Scan() as scan, spec, None):
                child = counted(scan)
                mine = replace(spec, number=0, told=told)
                return _of(node.output, Window(child, mine, child.columns[-1]))
            case Window(child, spec, time):
                mine = replace(spec, clocks=tuple(sorted(clocks[spec.number], key=_named)), number=0, told=told)
                return Window(rewritten(child), mine, time)
        return with_inputs(node, tuple(map(rewritten, node.inputs)))

    return rewritten(plan)


def _of(columns: tuple[Column, ...], node: Node) -> Node:
    """Some columns of a node."""
    return node if node.output == columns else Project(node, tuple((c, c) for c in columns))


def _named(clock: Clock) -> str:
    return clock.relation


def windows(plan: Node) -> Iterator[Window]:
    if isinstance(plan, Window):
        yield plan
    for child in plan.inputs:
        yield from windows(child)


def narrowed(view: View, nests: tuple[Nest, ...]) -> tuple[Nest, ...]:
    """The nests, of the rows of windows only what is read, and their time; all of it where late rows are told. Of bags
    what is read."""
    out: list[Nest] = []
    for nest in reversed(nests):  # outermost first: what is not kept there is not read further in
        atoms = (a for v in (view, *(n.view for n in out)) for a in v.atoms if a.relation == nest.relation)
        read = {title for atom in atoms for title, _ in atom.fields}
        if nest.window and not nest.window.told:
            nest = _narrowed(nest, nest.window, read)
        elif nest.by_group and nest.finish.is_bag:
            nest = _of_items(nest, tuple(item for item in nest.finish.items if item[0] in read))
        out.append(nest)
    return tuple(reversed(out))


def _narrowed(nest: Nest, window: WindowSpec, read: set[str]) -> Nest:
    items = tuple((title, expr) for title, expr in nest.finish.items if title in (*read, window.field))
    if window.field not in read and (pane := _pane(window, dict(items)[window.field])):
        items = tuple((title, pane.variable if title == window.field else expr) for title, expr in items)
        return _of_items(nest, items, pane)
    return _of_items(nest, items)


def _of_items(nest: Nest, items: tuple[tuple[str, Expr], ...], *made: Assign) -> Nest:
    """The nest with these of its items, which are keys of its view, or `made` of some."""
    keys = tuple(dict.fromkeys(expr for _, expr in items if isinstance(expr, Column)))
    terms = (replace(term, body=prune((*term.body, *made), keys, term.lanes)) for term in nest.view.terms)
    return replace(
        nest, view=replace(nest.view, keys=keys, terms=tuple(terms)), finish=replace(nest.finish, items=items)
    )


def _pane(window: WindowSpec, time: Expr) -> Assign | None:
    """Instead of a row's time the end of its pane: that of all rows that fall out with it. None where each goes alone.

    RANGE 60 SEC SLIDE 20 SEC    (0, 20] → 20    (20, 40] → 40        TUMBLE 20 SEC    [0, 20) → 0    [20, 40) → 20
    """
    frame = window.frame
    size = gcd(frame.size, frame.slide)
    if size == 1 or not isinstance(time, Column) or time.type != TIMESTAMP:
        return None
    # NB: a number of microseconds, as a TIMESTAMP that a pane at the ends of the years 1 to 9999 may not have
    end = Call("trunc_time", (time, Literal(size, BIGINT)), BIGINT, time.nullable)
    if not frame.tumbling:
        before = Call("add_micros", (time, Literal(-1, BIGINT)), BIGINT, time.nullable)
        end = Call("trunc_time", (before, Literal(size, BIGINT)), BIGINT, time.nullable)
        end = Call("add_micros", (end, Literal(size, BIGINT)), BIGINT, time.nullable)
    return Assign(Column(_PANES + time.id, time.name, TIMESTAMP, time.nullable), end)
