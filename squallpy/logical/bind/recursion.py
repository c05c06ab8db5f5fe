"""Binding of WITH RECURSIVE: queries that read themselves or each other → one Recursion for each group of them.

    reach AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM reach r JOIN edge e ON r.y = e.x)

The columns of a table have the names and types of its query without the operands of UNION that read the table, or types
to which all operands fit: these are bound until nothing changes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import BOOLEAN, INT, Kind
from squallpy.catalog.relation import WORKING, Field, Relation
from squallpy.frontend.unsupported import RECURSION
from squallpy.logical.bind.context import CommonTable, Context
from squallpy.logical.bind.from_clause import bind_nested, rehearsal, with_new_columns
from squallpy.logical.bind.recursion_checks import check_operators, is_monotone, reads_any, table_names, working_copies
from squallpy.logical.expressions import Call, Column, Expr, Literal
from squallpy.logical.nodes import Aggregate, Filter, Node, Project, SetOperation, Union
from squallpy.logical.recursion import Growth, Recursion, RecursiveTable

_MOST_ROUNDS = 8  # of types that become wider


@dataclass(frozen=True, slots=True)
class RecursiveGroup:
    """Queries of one WITH RECURSIVE that read each other, by name in lower case, and the context around them."""

    queries: Mapping[str, exp.CTE]
    context: Context

    def bind(self, name: str, ctx: Context) -> Node:
        """Bind the rows of one of them to new columns."""
        context = replace(self.context, ids=ctx.ids, rehearses=ctx.rehearses)
        recursion = _bind_recursion(context, self)
        place = list(self.queries).index(name)
        if len(self.queries) == 1:
            return with_new_columns(ctx, recursion)
        tag = Call("=", (recursion.columns[0], Literal(place, INT)), BOOLEAN, False)
        own = recursion.columns_of(place)
        fields = recursion.tables[place].relation.fields
        rows = Filter(recursion, tag)
        return Project(
            rows, tuple((ctx.column(c.name, c.type, f.nullable), c) for c, f in zip(own, fields, strict=True))
        )


def recursive_groups(clause: exp.With) -> Iterator[list[exp.CTE]]:
    """Yield the queries of WITH RECURSIVE in an order in which each reads those before it; those that read each other
    together."""
    queries: dict[str, exp.CTE] = {cte.alias.lower(): cte for cte in clause.expressions}
    reads = {name: [each for each in queries if each in table_names(cte.this)] for name, cte in queries.items()}
    reached = {name: _closure(name, reads) for name in queries}
    done = set[str]()

    def visit(name: str) -> Iterator[list[exp.CTE]]:
        if name in done:
            return
        group = [each for each in queries if each == name or (each in reached[name] and name in reached[each])]
        done.update(group)
        for member in group:
            for other in reads[member]:
                yield from visit(other)
        yield [queries[each] for each in group]

    for name in queries:
        yield from visit(name)


def is_recursive(group: Sequence[exp.CTE]) -> bool:
    """True if the queries of a group read themselves or each other."""
    return len(group) > 1 or group[0].alias.lower() in table_names(group[0].this)


def _is_plain(query: exp.Expr) -> bool:
    """True if a query keeps the rows that it selects, of which then neither UNION nor UNION ALL decides."""
    return isinstance(query, exp.Select) and not query.args.get("distinct") and not query.args.get("group")


def _closure(name: str, reads: Mapping[str, list[str]]) -> set[str]:
    found, pending = set[str](), list(reads[name])
    while pending:
        each = pending.pop()
        if each not in found:
            found.add(each)
            pending += reads[each]
    return found


def with_recursive_group(ctx: Context, group: Sequence[exp.CTE]) -> Context:
    """Extend the context by queries that read each other; they are checked even where they are not used."""
    names = {cte.alias.lower(): cte for cte in group}
    for cte in group:
        check_operators(ctx, cte, names)
        if len(group) == 1 and _is_plain(cte.this) and without_operands(cte.this, frozenset(names)) is not None:
            message = f'"{cte.alias}" reads itself inside a SELECT that is no UNION'
            raise ctx.error("SQ2005", message, _name(cte), "write UNION or UNION ALL around it")
    recursive = RecursiveGroup(names, ctx)
    tables = {name: CommonTable(cte.this, (), ctx, make=partial(recursive.bind, name)) for name, cte in names.items()}
    inside, _ = rehearsal(ctx, None)
    plans = {name: recursive.bind(name, inside) for name in names}
    return replace(ctx, ctes={**ctx.ctes, **{n: replace(t, plan=plans[n]) for n, t in tables.items()}})


def _bind_recursion(ctx: Context, group: RecursiveGroup) -> Recursion:
    fields = _first_fields(ctx, group)
    for _ in range(_MOST_ROUNDS):
        inside = _with_working_tables(ctx, group, fields)
        plans = {name: _bind_query(inside, cte, fields[name]) for name, cte in group.queries.items()}
        before, fields = fields, {name: _widened(fields[name], plan) for name, plan in plans.items()}
        if fields == before:
            return _recursion(ctx, group, inside, plans)
    cte = next(group.queries[name] for name in fields if fields[name] != before[name])
    raise ctx.error("SQ2005", f'the types of "{cte.alias}" become wider with each iteration', _name(cte), _CAST)


_CAST = "CAST the columns that read it to a type of their own"


def _widened(fields: tuple[Field, ...], plan: Node) -> tuple[Field, ...]:
    output = zip(fields, plan.output, _nullable(plan), strict=True)
    return tuple(Field(f.name, c.type, f.nullable or nullable) for f, c, nullable in output)


def _nullable(plan: Node) -> list[bool]:
    """List whether columns of a query may be NULL: not MIN and MAX, by keys, of values that never are."""
    made = plan.child if isinstance(plan, Project) else plan
    if not isinstance(made, Aggregate) or not made.keys:
        return [column.nullable for column in plan.output]
    never = {
        column
        for column, agg in made.aggs
        if agg.function in ("min", "max") and agg.arg is not None and not agg.arg.nullable
    }
    values = [expr for _, expr in plan.items] if isinstance(plan, Project) else plan.output
    return [value.nullable and value not in never for value in values]


def _name(cte: exp.CTE) -> exp.Expr:
    name: exp.Expr = cte.args["alias"].this
    return name


def _titles(ctx: Context, cte: exp.CTE, plan: Node) -> list[str]:
    """List the names of a table's columns; SQ2005 if more or fewer are written than its query has."""
    names = [c.name for c in cte.args["alias"].args.get("columns") or ()]
    if names and len(names) != len(plan.output):
        message = f"{len(names)} column names for {len(plan.output)} columns"
        raise ctx.error("SQ2005", message, cte.args["alias"])
    return names or [c.name for c in plan.output]


def _bind_query(ctx: Context, cte: exp.CTE, fields: tuple[Field, ...]) -> Node:
    """Bind the query of a table of some columns."""
    plan = bind_nested(ctx, cte.this)
    _titles(ctx, cte, plan)
    if len(fields) != len(plan.output):
        message = f'"{cte.alias}" has {len(fields)} columns, and {len(plan.output)} where it reads itself'
        raise ctx.error("SQ2005", message, _name(cte))
    return plan


def _first_fields(ctx: Context, group: RecursiveGroup) -> dict[str, tuple[Field, ...]]:
    """Find the columns of each table by its query without the operands that read tables of the group that are not
    known yet."""
    found = dict[str, tuple[Field, ...]]()
    while len(found) < len(group.queries):
        before = len(found)
        for name, cte in group.queries.items():
            unknown = frozenset(group.queries) - frozenset(found)
            if name in found or (start := without_operands(cte.this, unknown)) is None:
                continue
            inside = _with_working_tables(ctx.rehearsal(), group, found)
            plan = bind_nested(inside, start)
            titles = _titles(ctx, cte, plan)
            output = zip(titles, plan.output, _nullable(plan), strict=True)
            found[name] = tuple(Field(title, c.type, nullable) for title, c, nullable in output)
        if len(found) == before:
            cte = next(cte for name, cte in group.queries.items() if name not in found)
            message = f'"{cte.alias}" has no part that does not read itself, so it never has a row'
            raise ctx.error("SQ2005", message, _name(cte), "begin it with a query of other tables, and UNION")
    return found


def without_operands(query: exp.Expr, unknown: frozenset[str]) -> exp.Expr | None:
    """Remove the operands of UNION that read tables; None if some part besides reads one."""
    if not reads_any(query, unknown):
        return query
    if isinstance(query, exp.Union):
        sides = [without_operands(side, unknown) for side in (query.this, query.expression)]
        if sides[0] is None or sides[1] is None:
            return sides[0] if sides[1] is None else sides[1]
        return _with_parts(query, {"this": sides[0], "expression": sides[1]})
    if isinstance(query, exp.Subquery | exp.CTE | exp.From):
        inner = without_operands(query.this, unknown)
        return None if inner is None else _with_parts(query, {"this": inner})
    if isinstance(query, exp.Select) and not query.args.get("joins") and query.args.get("from_"):
        start = without_operands(query.args["from_"], unknown)
        if start is not None:
            start = _with_parts(query, {"from_": start})
            return None if reads_any(start, unknown) else start
    return None


def _with_parts(query: exp.Expr, parts: Mapping[str, exp.Expr]) -> exp.Expr:
    """Copy a query with other parts in place of its own."""
    copied = query.copy()
    copied.parent = query.parent
    for name, part in parts.items():
        copied.set(name, part.copy())
    return copied


def _with_working_tables(ctx: Context, group: RecursiveGroup, fields: Mapping[str, tuple[Field, ...]]) -> Context:
    """Let the names of a group's tables stand for their working tables."""
    taken = {*ctx.working}
    tables = {}
    for name, own in fields.items():
        cte = group.queries[name]
        title = cte.alias
        while title.lower() in taken:
            title += "'"
        taken.add(title.lower())
        relation = Relation(title, own, True, WORKING)
        tables[name] = CommonTable(cte.this, (), ctx, working=relation)
    return replace(ctx, ctes={**ctx.ctes, **tables}, working=frozenset(taken))


def _recursion(ctx: Context, group: RecursiveGroup, inside: Context, plans: Mapping[str, Node]) -> Recursion:
    names = list(group.queries)
    working = [inside.ctes[name].working for name in names]
    relations = [relation for relation in working if relation is not None]
    found = list[tuple[Growth | None, int, Node]]()
    for name, plan in plans.items():
        with ctx.at(_name(group.queries[name])):
            found.append(_derivation(plan))
    is_bag = any(growth is Growth.UNION_ALL for growth, _, _ in found)
    tables, children = list[RecursiveTable](), list[Node]()
    for name, relation, (growth, value, plan) in zip(names, relations, found, strict=True):
        cte = group.queries[name]
        growth = growth or (Growth.UNION_ALL if is_bag else Growth.UNION)
        if is_bag and growth is not Growth.UNION_ALL:
            message = f'"{cte.alias}" reads itself by way of UNION ALL'
            raise ctx.error("SQ2005", message, _name(cte), "write UNION, or UNION ALL, in all of these queries")
        tables.append(RecursiveTable(relation, growth, value))
        children.append(plan)
    _check_growth(ctx, group, tables, children)
    columns = [ctx.column("table", INT, False)] if len(names) > 1 else []
    for relation in relations:
        columns += [ctx.column(f.name, f.type, f.nullable or len(names) > 1) for f in relation.fields]
    first = next(iter(group.queries.values()))
    return Recursion(tuple(children), tuple(tables), tuple(columns), ctx.span(_name(first)))


def _check_growth(
    ctx: Context, group: RecursiveGroup, tables: Sequence[RecursiveTable], children: Sequence[Node]
) -> None:
    """Refuse UNION ALL of products of recursive tables, and MIN and MAX that iterations would not improve."""
    growths = {table.relation.name: (table.growth, table.value) for table in tables}
    for cte, table, plan in zip(group.queries.values(), tables, children, strict=True):
        if table.growth is Growth.UNION_ALL and working_copies(plan, growths) > 1:
            raise ctx.refuse(_name(cte), RECURSION["twice"])
        extreme = any(growth.is_extreme for growth, _ in growths.values())
        if extreme and not is_monotone(plan, growths, table.growth, table.value):
            raise ctx.refuse(_name(cte), RECURSION["monotone"])


def _derivation(plan: Node) -> tuple[Growth | None, int, Node]:
    """Tell how a query's table grows, with the position of its extreme value, and what derives its rows."""
    match plan:
        case SetOperation("UNION", False, children, columns):
            return Growth.UNION, -1, Union(children, columns)
        case Union():
            return Growth.UNION_ALL, -1, plan
        case Project(SetOperation() | Union() as child, items):
            growth, value, inside = _derivation(child)
            return growth, value, Project(inside, items)
        case Project(Aggregate(child, keys, ()), items):
            return Growth.UNION, -1, Project(child, _through(items, keys))
        case Aggregate(child, keys, ()):
            return Growth.UNION, -1, Project(child, keys)
        case Project(Aggregate(child, keys, ((column, agg),)), items) if agg.function in ("min", "max") and agg.arg:
            if {expr for _, expr in items} != {*(key for key, _ in keys), column}:
                raise SquallError("SQ3001", f"{RECURSION['key'].name} is not supported yet", hint=RECURSION["key"].hint)
            if agg.arg.type.kind is Kind.VARCHAR or agg.arg.type.is_wide:
                told = f"{agg.function.upper()} of {agg.arg.type} over a recursive table is not supported yet"
                raise SquallError("SQ3001", told, hint="CAST it to DECIMAL(18,2), a BIGINT, DOUBLE or TIMESTAMP")
            growth = Growth.MIN if agg.function == "min" else Growth.MAX
            value = next(i for i, (_, expr) in enumerate(items) if expr == column)
            return growth, value, Project(child, _through(items, (*keys, (column, agg.arg))))
    return None, -1, plan


def _through(
    items: Sequence[tuple[Column, Expr]], below: Sequence[tuple[Column, Expr]]
) -> tuple[tuple[Column, Expr], ...]:
    inner = dict(below)
    return tuple((column, inner[expr]) for column, expr in items if isinstance(expr, Column))
