"""Refusal of what has no least fixpoint, or is not followed through one, in queries that read themselves."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from squallpy.base.types import BIGINT
from squallpy.frontend.unsupported import RECURSION
from squallpy.logical.bind.aggregates.collector import is_aggregate
from squallpy.logical.bind.context import Context
from squallpy.logical.expressions import Column, Expr, columns, conjuncts, substitute
from squallpy.logical.monotonicity import FALLING, RISING, STEADY, direction, slope
from squallpy.logical.nodes import Filter, Join, Node, Project, Scan, Union, nodes
from squallpy.logical.recursion import Growth

_IN_FROM = (exp.From, exp.Join, exp.Lateral, exp.SetOperation, exp.Exists, exp.In, exp.CTE, exp.Subquery)
_BETWEEN = (exp.Select, exp.SetOperation, exp.Subquery, exp.From, exp.Join, exp.Lateral, exp.CTE, exp.With)


def table_names(query: exp.Expr) -> set[str]:
    """Collect the names in FROM that a query takes from around it, in lower case."""
    return {table.name.lower() for table in outer_tables(query)}


def reads_any(query: exp.Expr, names: Collection[str]) -> bool:
    """True if a query reads one of these names."""
    return bool(names) and any(table.name.lower() in names for table in outer_tables(query))


def outer_tables(query: exp.Expr) -> Iterator[exp.Table]:
    """Yield the tables of a query that no WITH inside it defines."""
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not table.db and not _is_defined_inside(table, query):
            yield table


def _is_defined_inside(table: exp.Table, query: exp.Expr) -> bool:
    node: exp.Expr | None = table
    while node is not None:
        clause = node.args.get("with_")
        if clause is not None and any(cte.alias.lower() == table.name.lower() for cte in clause.expressions):
            return True
        node = None if node is query else node.parent
    return False


def check_operators(ctx: Context, cte: exp.CTE, names: Mapping[str, exp.CTE]) -> None:
    """Refuse operators over a recursive table through which its rows cannot be followed: SQ3001."""
    for call in cte.this.find_all(exp.Anonymous):
        inner = call.expressions[0] if call.name.upper() == "TABLE" and len(call.expressions) == 1 else None
        if isinstance(inner, exp.Column) and not inner.table and inner.name.lower() in names:
            raise ctx.refuse(call, RECURSION["table function"])
    for table in outer_tables(cte.this):
        if table.name.lower() in names:
            _check_way(ctx, cte, table)


def _check_way(ctx: Context, cte: exp.CTE, table: exp.Table) -> None:
    """Check all operators from a use of a recursive table up to the query that defines it."""
    child: exp.Expr = table
    is_tested = False  # below an EXISTS or IN, up to its WHERE
    while child is not cte.this:
        node = child.parent
        assert node is not None
        match node:
            case exp.Except() | exp.Intersect():
                raise ctx.refuse(node.expression, RECURSION[node.key.upper()])
            case exp.Exists() | exp.In():
                is_tested = True
            case exp.Not() if is_tested:
                raise ctx.refuse(table, RECURSION["NOT"])
            case exp.And() | exp.Paren() | exp.Where() | exp.Join() if is_tested:
                is_tested = is_tested and not isinstance(node, exp.Where | exp.Join)
            case _ if is_tested and not isinstance(node, exp.Subquery):
                raise ctx.refuse(table, RECURSION["test"])
            case exp.Join(kind="ANTI"):
                raise ctx.refuse(table, RECURSION["NOT"])
            case exp.Subquery(parent=parent) if not isinstance(parent, _IN_FROM):
                raise ctx.refuse(table, RECURSION["scalar"])
            case _ if not isinstance(node, _BETWEEN):
                raise ctx.refuse(table, RECURSION["scalar"])
        if isinstance(node, exp.Select) and isinstance(child, exp.From | exp.Join | exp.Lateral):
            _check_select(ctx, cte, node)
        if isinstance(node, exp.Query) and (node.args.get("limit") or node.args.get("offset")):
            raise ctx.refuse(table, RECURSION["LIMIT"])
        child = node


def _check_select(ctx: Context, cte: exp.CTE, select: exp.Select) -> None:
    """Check the clauses of a SELECT over a recursive table."""
    for join in select.args.get("joins") or []:
        if join.side and join.kind not in ("SEMI", "ANTI"):
            raise ctx.refuse(join, RECURSION["outer join"])
    if isinstance(select.args.get("distinct"), exp.Distinct) and select.args["distinct"].args.get("on"):
        raise ctx.refuse(select, RECURSION["DISTINCT ON"])
    own = [node for node in _own(select) if isinstance(node, exp.Window) or is_aggregate(node)]
    windows = [node for node in own if isinstance(node, exp.Window)]
    if windows or select.args.get("qualify"):
        raise ctx.refuse(windows[0] if windows else select.args["qualify"], RECURSION["OVER"])
    if not own and not select.args.get("having"):
        return
    is_whole = select is cte.this and len(own) == 1 and own[0].name.upper() in ("MIN", "MAX")
    is_whole = is_whole and any(own[0] is each.unalias() for each in select.expressions)
    group = select.args.get("group")
    is_several = group is not None and any(group.args.get(part) for part in ("grouping_sets", "cube", "rollup"))
    if not is_whole or select.args.get("having") or is_several:
        raise ctx.refuse(own[0] if own else select.args["having"], RECURSION["aggregate"])


def _own(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the expressions of a SELECT, without those of queries inside it."""
    parts = [*select.expressions, *filter(None, (select.args.get("having"), select.args.get("qualify")))]
    for part in parts:
        yield from part.walk(prune=lambda node: isinstance(node, exp.Query | exp.Window))


def working_copies(plan: Node, names: Collection[str]) -> int:
    """Count how many rows of working tables make one row of a plan, at most."""
    if isinstance(plan, Scan):
        return int(plan.relation.name in names)
    below = [working_copies(child, names) for child in plan.inputs]
    return max(below, default=0) if isinstance(plan, Union) else sum(below)


def is_monotone(plan: Node, growths: Mapping[str, tuple[Growth, int]], growth: Growth, value: int) -> bool:
    """True if better values of the extreme columns that a plan reads never make the value of its own column worse.

    Args:
        growths: The growth and the position of the extreme column of each working table, by its name.
        growth, value: Those of the table whose rows the plan derives.
    """
    signs = dict[int, int]()  # of columns that depend on extreme ones: 1 if they rise with them, −1 if they fall
    for node in nodes(plan):
        match node:
            case Scan(relation, _, made) if relation.name in growths and growths[relation.name][0].is_extreme:
                kind, at = growths[relation.name]
                signs[made[at].id] = 1 if kind is growth or not growth.is_extreme else -1
            case Project(_, items):
                for column, expr in items:
                    if columns(expr) and (sign := _sign(expr, signs)) != 0:
                        if sign is None:
                            return False
                        signs[column.id] = sign
            case Union(children, made):
                for column, *same in zip(made, *(child.output for child in children), strict=True):
                    found = {signs[c.id] for c in same if c.id in signs}
                    if len(found) > 1:
                        return False
                    signs |= dict.fromkeys([column.id] if found else [], next(iter(found), 0))
            case Filter(_, predicate) | Join(_, _, predicate) if predicate is not None:
                if not all(_is_kept(each, signs, growth) for each in conjuncts(predicate)):
                    return False
            case _ if any(c.id in signs for child in node.inputs for c in child.output):
                return False
    return all(signs.get(c.id, 0) == 0 or (i == value and signs[c.id] == 1) for i, c in enumerate(plan.output))


def _is_kept(conjunct: Expr, signs: Mapping[int, int], growth: Growth) -> bool:
    """True if a condition that holds for a value holds for a better one."""
    wanted = (STEADY, FALLING if growth is Growth.MIN else RISING)
    for column in (c for c in columns(conjunct) if c.id in signs):
        found = direction(*_as_exact(conjunct, column))
        if found is None or found * signs[column.id] not in wanted:
            return False
    return True


def _sign(expr: Expr, signs: Mapping[int, int]) -> int | None:
    """Tell if an expression rises (1) or falls (−1) with extreme columns, reads none (0), or does neither (None)."""
    found = set[int]()
    for column in (c for c in columns(expr) if c.id in signs):
        own = slope(*_as_exact(expr, column))
        if own is None:
            return None
        found.add(own * signs[column.id])
    found -= {STEADY}
    return found.pop() if len(found) == 1 else None if found else STEADY


def _as_exact(expr: Expr, column: Column) -> tuple[Expr, Column]:
    """Take a column of DOUBLEs for one of integers: of sums of these only ∞ − ∞ would not be in order."""
    exact = replace(column, type=BIGINT)
    return substitute(expr, {column.id: exact}), exact
