"""EXPLODE(SPLIT(x, p)) → a scan of a relation that has a row for each part of a text; and windows that overlap alike.

    lines LATERAL VIEW EXPLODE(SPLIT(LOWER(line), ' ')) t AS word   →   Scan lines·line: line, part word, its position
    GROUP BY WINDOW(at, '10 minutes', '5 minutes')                  →   Scan lines·at: line, start and end of each

A text is cut where its row is read, before anything is joined: whatever is joined to a row is joined to each of its
parts, so what changes is linear, and costs nothing beyond the rows that it makes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from squallpy.base.types import BIGINT, INT, TIMESTAMP, VARCHAR, Shape, Type
from squallpy.catalog.relation import CONSTANT, Cumulations, Elements, Field, Hops, Parts, Relation, Series, Split
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.apply import Apply, ApplyKind
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.datetime.calendar import last_multiple
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.listed_rows import LISTS, ListedRows, list_columns, listed_rows, with_columns
from squallpy.logical.bind.nested_values import field_of
from squallpy.logical.bind.ordinality import ordinal, ordinality_of
from squallpy.logical.bind.scope import FromItem, Scope
from squallpy.logical.bind.sequence_functions import COLUMNS, from_zero, is_series, one_row, series
from squallpy.logical.bind.split_function import is_split, split_of_call
from squallpy.logical.bind.time_buckets import BOUNDS, NAME, hops, is_window
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Column, Expr, Literal, columns, conjunction, substitute
from squallpy.logical.nodes import ConditionalJoin, Filter, Join, Node, Project, Scan, Window, with_inputs

GENERATORS = ("EXPLODE", "POSEXPLODE", "EXPLODE_OUTER", "POSEXPLODE_OUTER", "UNNEST", "GENERATE_SERIES", *LISTS)
TABLE_FUNCTIONS = (*GENERATORS, "RANGE")


def _generator(node: exp.Expr) -> str:
    """Return the name of a call that makes rows where it is selected, '' for anything else."""
    name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
    return name if name in GENERATORS else ""


def _table_function(node: exp.Expr) -> exp.Expr | None:
    """Return what makes rows in FROM, EXPLODE(x), LATERAL EXPLODE(x), UNNEST(x), RANGE(n) or LATERAL (VALUES …), None
    for anything else."""
    if isinstance(node, exp.Unnest):
        return node
    called = node.this if isinstance(node, exp.Lateral | exp.Table) else None
    if isinstance(node, exp.Lateral) and isinstance(called, exp.Subquery) and isinstance(called.this, exp.Values):
        return called.this
    return called if isinstance(called, exp.Anonymous) and called.name.upper() in TABLE_FUNCTIONS else None


def in_from(ctx: Context, select: exp.Select) -> exp.Select:
    """Move generators of the select list to FROM.

    SELECT EXPLODE(x) AS w FROM r   →   SELECT w FROM r LATERAL VIEW EXPLODE(x) AS w
    """
    bare = [node.this if isinstance(node, exp.Alias | exp.Aliases) else node for node in select.expressions]
    generators = [node for node in bare if _generator(node)]
    if not generators:
        return select
    if len(generators) > 1:
        raise ctx.refuse(generators[1], QUERIES["second generator"])
    out = select.copy()
    out.parent = select.parent
    items, views = list[exp.Expr](), list[exp.Expr]()
    for item in out.expressions:
        generator = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
        if _generator(generator):
            names, table = list(_names(ctx, item, generator)), exp.to_identifier(f"rows {len(views) + 1}", quoted=True)
            chosen: list[exp.Expr] = [*names] or [exp.Star()]
            items += [exp.Column(this=name.copy(), table=table.copy()) for name in chosen]
            views.append(exp.Lateral(this=generator, view=True, alias=exp.TableAlias(this=table, columns=names)))
        else:
            items.append(item)
    out.set("expressions", items)
    out.set("laterals", [*(out.args.get("laterals") or []), *views])
    return out


def _names(ctx: Context, item: exp.Expr, generator: exp.Expr) -> Iterator[exp.Identifier]:
    """Yield the names of the columns that a generator in SELECT makes; none of INLINE of an ARRAY that has a type."""
    if isinstance(item, exp.Aliases):
        yield from item.expressions
        return
    listed = listed_rows(ctx, generator)
    if listed and len(listed.names) > 1:
        yield from map(exp.to_identifier, listed.names)
        return
    if _generator(generator).startswith("INLINE") and not listed:
        return
    if _generator(generator).startswith("POS"):
        yield exp.to_identifier("pos")
    default = COLUMNS.get(_generator(generator), "col")
    yield exp.to_identifier(item.alias if isinstance(item, exp.Alias) else default)


def is_generator(node: exp.Expr) -> bool:
    """True if a source of FROM is EXPLODE, UNNEST or RANGE of columns beside it."""
    called = _table_function(node)
    return called is not None and any(arg.find(exp.Column) for arg in called.expressions)


def is_constant_table(node: exp.Expr) -> bool:
    """True if a source of FROM is EXPLODE, UNNEST or RANGE of constants."""
    return _table_function(node) is not None and not is_generator(node)


def constant_table(ctx: Context, node: exp.Expr) -> Node:
    """Bind a table of constants in FROM, as RANGE(10) or UNNEST(SEQUENCE(1, 3))."""
    scope = Scope()
    plan = bind_explode(ctx, scope, one_row(ctx), node)
    (source,) = scope.sources
    return Project(plan, ctx.copies(source.columns))


def bind_explode(ctx: Context, scope: Scope, plan: Node, node: exp.Expr, lost: bool = False) -> Node:
    """Extend a plan by the columns of a LATERAL VIEW, or of a generator in FROM, which become a source of the scope.

    Args:
        lost: Rows stay for which it makes none.
    """
    call = node
    if isinstance(node, exp.Unnest):
        ctx.refuse_other_args(node, "expressions", "alias", "offset")
    else:
        ctx.refuse_other_args(node, "this", "alias", "view", "outer")
        call = node.this
    scalars = Scalars(ctx, scope, "LATERAL VIEW")
    if is_window(call):
        return _windows(scalars, plan, node, call)
    name = "UNNEST" if call is node else call.name.upper() if isinstance(call, exp.Anonymous) else ""
    keeps_empty = lost or bool(node.args.get("outer")) or name.endswith("OUTER")
    if isinstance(call, exp.Subquery):
        name, call = "VALUES", call.this
    alias, ordinality = ordinality_of(node)
    listed = listed_rows(ctx, call)
    if listed:
        return _listed(scalars, plan, node, listed, name.startswith("POS"))
    array = call if is_series(call) else call.expressions[0] if len(call.expressions) == 1 else None
    if name not in TABLE_FUNCTIONS or array is None:
        raise ctx.refuse(call, QUERIES["EXPLODE"])
    value, made = _parts_of(scalars, array, keeps_empty, "INLINE" if name.startswith("INLINE") else "EXPLODE")
    if name.startswith("INLINE"):
        return _inline(scalars, plan, node, value, made)
    is_map = isinstance(made, Elements) and made.is_map
    if is_map and (name.startswith("POS") or ordinality):
        raise ctx.refuse(call, QUERIES["EXPLODE"])
    default = ("pos", "col") if name.startswith("POS") else (COLUMNS.get(name, "col"),)
    default = ("key", "value") if is_map else default
    if name == "GENERATE_SERIES" and alias and alias.name:
        default = (alias.name,)  # as in PostgreSQL
    names = _column_names(ctx, alias, default, "name key and value: AS (k, v)" if is_map else "")
    *before, last = names
    fields = _new_fields(value, made, keeps_empty)
    part, position = (
        ctx.column(title, type, null) for title, (_, type, null) in zip((last, "pos"), fields, strict=True)
    )
    position = replace(position, name=next(iter(before), "pos"))
    if isinstance(made, Series) and not columns(value):
        found: Node | None = _join_series(ctx, plan, value, (part, position), made)
    else:
        found = _spread(ctx, plan, value, (part, position), made)
    if found is None:
        raise ctx.refuse(array, QUERIES["EXPLODE of what is not read"])
    made_columns = (position, part) if before else (part,)
    if ordinality:
        number = ctx.column(ordinality, BIGINT, keeps_empty)
        found = with_columns(found, [(number, ordinal(position))])
        made_columns = (part, number)
    scope.add(ctx, FromItem(alias.name if alias else "", made_columns), node)
    return found


def _column_names(ctx: Context, alias: exp.Expr | None, default: tuple[str, ...], hint: str = "") -> tuple[str, ...]:
    """Return the names that an alias gives to the columns of what makes rows, or their own."""
    given = tuple(c.name for c in alias.args.get("columns") or ()) if alias else ()
    if alias and given and len(given) != len(default):
        raise ctx.error(
            "SQ2005", f"{len(given)} column names for {len(default)} column{'s' * (len(default) != 1)}", alias, hint
        )
    return given or default


def _join_series(ctx: Context, plan: Node, value: Expr, new: tuple[Column, Column], made: Series) -> Node:
    """Join a plan with a series of constants, which is a table."""
    row = one_row(ctx)
    table = _spread(ctx, row, from_zero(value, row.columns[0]), new, made)
    assert table is not None
    return table if _is_one_row(plan) else Join(plan, table, None)


def _listed(s: Scalars, plan: Node, node: exp.Expr, listed: ListedRows, has_positions: bool) -> Node:
    """Extend a plan by the columns of rows that are listed, POSEXPLODE(ARRAY(x, y)) also by their numbers."""
    alias, ordinality = ordinality_of(node)
    *before, last = _column_names(s.ctx, alias, (*["pos"][: int(has_positions)], *listed.names))
    names = (last,) if has_positions else (*before, last)
    number = s.ctx.column("id", INT, False)
    series = call("sequence", Literal(0, INT), Literal(len(listed.rows) - 1, INT), Literal(1, BIGINT))
    new = (number, s.ctx.column("pos", INT, False))
    made = list_columns(s, listed, number, names)
    found = _join_series(s.ctx, plan, series, new, Series("SEQUENCE", True, True, False))
    position = [(s.ctx.column(before[0], INT, False), number)] if has_positions else []
    if ordinality:
        made.append((s.ctx.column(ordinality, BIGINT, False), ordinal(number)))
    s.scope.add(s.ctx, FromItem(alias.name if alias else "", tuple(c for c, _ in (*position, *made))), node)
    return with_columns(found, (*position, *made))


def _inline(s: Scalars, plan: Node, node: exp.Expr, value: Expr, made: Split | Series | Elements) -> Node:
    """Extend a plan by the fields of the STRUCTs of an ARRAY."""
    element = value.type.nested.types[0] if value.type.nested else value.type
    if not isinstance(made, Elements) or made.is_map or not element.nested or element.nested.shape is not Shape.STRUCT:
        raise s.ctx.refuse(node, QUERIES["INLINE"])
    new = (s.ctx.column("col", element, True), s.ctx.column("pos", INT, made.kept))
    found = _spread(s.ctx, plan, value, new, made)
    if found is None:
        raise s.ctx.refuse(node, QUERIES["EXPLODE of what is not read"])
    alias = node.args.get("alias")
    names = _column_names(s.ctx, alias, element.nested.names, f"its STRUCTs have {', '.join(element.nested.names)}")
    fields = [field_of(s, new[0], exp.to_identifier(field)) for field in element.nested.names]
    columns = [(s.ctx.column(name, field.type, True), field) for name, field in zip(names, fields, strict=True)]
    s.scope.add(s.ctx, FromItem(alias.name if alias else "", tuple(c for c, _ in columns)), node)
    return with_columns(found, columns)


def guard_series(ctx: Context, plan: Node, conditions: Sequence[Expr]) -> Node:
    """Make no series of rows that WHERE leaves out: some might be meaningless, or huge.

    Filter k = 1 (Scan r·a: SEQUENCE(a, b))   →   Filter k = 1 (Scan r·a: SEQUENCE(CASE WHEN k = 1 THEN a END, b))
    """
    match plan:
        case Scan(relation, alias, fields) if relation.parts is not None and isinstance(
            relation.parts.generator, Series
        ):
            parts, numbered = relation.parts, {c.id: replace(c, id=i) for i, c in enumerate(fields[:-2])}
            known = [c for c in conditions if columns(c) and {each.id for each in columns(c)} <= numbered.keys()]
            if not known:
                return plan
            start, *others = parts.value.args
            condition = substitute(conjunction(known), dict(numbered))
            value = call("sequence", case([(condition, start)], Literal(None, start.type)), *others)
            return Scan(_relation(ctx, replace(parts, value=value)), alias, fields)
        case Filter() | Join():
            below = tuple(guard_series(ctx, each, conditions) for each in plan.inputs)
            if all(a is b for a, b in zip(below, plan.inputs, strict=True)):
                return plan
            return Filter(below[0], plan.predicate) if isinstance(plan, Filter) else Join(below[0], below[1], plan.on)
    return plan


def _is_one_row(plan: Node) -> bool:
    return isinstance(plan, Scan) and plan.relation.format == CONSTANT


def _new_fields(value: Expr, made: Split | Series | Elements, kept: bool) -> list[tuple[str, Type, bool]]:
    """List what a generator makes, as names, types and whether they may be NULL: the part, then its position or key."""
    nested = value.type.nested
    if nested is None:
        return [("part", value.type, kept), ("position", INT, kept)]
    if nested.shape is Shape.ARRAY:
        return [("part", nested.types[0], True), ("position", INT, kept)]
    return [("value", nested.types[1], True), ("key", nested.types[0], kept)]


def _parts_of(
    s: Scalars, array: exp.Expr, keeps_empty: bool, generator: str = "EXPLODE"
) -> tuple[Expr, Split | Series | Elements]:
    """Bind what a generator reads, the text that SPLIT cuts or the bounds of a series, and how it makes rows of it."""
    if isinstance(array, exp.Anonymous) and is_series(array):
        return series(s, array, keeps_empty)
    if not is_split(array):
        value = s.bind(array)
        if value.type.nested is None or value.type.nested.shape is Shape.STRUCT:
            raise s.ctx.refuse(array, QUERIES[generator])
        return value, Elements(value.type.nested.shape is Shape.MAP, keeps_empty)
    written, separator = split_of_call(s.ctx, array)
    text = s.bind(written)
    if text.type != VARCHAR:
        raise s.ctx.error("SQ2004", f"SPLIT of {text.type}", written, "it cuts VARCHAR")
    return text, Split(separator, keeps_empty)


def _windows(s: Scalars, plan: Node, node: exp.Expr, call: exp.Expr) -> Node:
    """Extend a plan by the windows in which a time is."""
    time = s.bind(exp.cast(call.expressions[0].copy(), "timestamp"))
    found, *bounds = in_windows(s.ctx, plan, time, hops(s.ctx, call))
    s.scope.add(s.ctx, FromItem(NAME, tuple(bounds)), node)
    return found


def in_windows(ctx: Context, plan: Node, time: Expr, windows: Hops | Cumulations) -> tuple[Node, Column, Column]:
    """Extend a plan by the windows in which a time is; returned with the columns of their starts and ends.

    Of the two bounds that are made one is computed from the other, so that groups by both have one key.
    """
    start, end, begun, ended = (ctx.column(name, TIMESTAMP, False) for name in (*BOUNDS, *BOUNDS))
    made = _spread(ctx, plan, time, (begun, ended), windows)
    if made is None:
        made = _join_windows(ctx, plan, time, (begun, ended), windows)
    bounds: tuple[Expr, Expr] = begun, ended
    match windows:
        case Hops(size):
            bounds = begun, _later(begun, size)
        case Cumulations(size, _, offset):
            bounds = last_multiple(_later(ended, -1), size, offset), ended
    return Project(made, (*((c, c) for c in plan.output), *zip((start, end), bounds, strict=True))), start, end


def _join_windows(
    ctx: Context, plan: Node, time: Expr, new: tuple[Column, Column], windows: Hops | Cumulations
) -> Node:
    """Extend a plan by the windows of a time that is computed, of an aggregate perhaps: it is joined with their
    numbers."""
    many = windows.most
    numbers = constant_table(ctx, exp.Table(this=exp.Anonymous(this="RANGE", expressions=[exp.Literal.number(many)])))
    (number,) = numbers.output
    match windows:
        case Hops(size, slide, offset):
            begins = _moved(last_multiple(time, slide, offset), number, -slide)
            ends = _later(begins, size)
        case Cumulations(size, step, offset):
            begins = last_multiple(time, size, offset)
            ends = _moved(_later(begins, step), number, step)
    rows = Filter(Join(plan, numbers), call("<", time, ends))
    return Project(rows, (*((c, c) for c in plan.output), *zip(new, (begins, ends), strict=True)))


def _later(time: Expr, micros: int) -> Expr:
    return call("add_micros", time, Literal(micros, BIGINT))


def _moved(time: Expr, number: Expr, length: int) -> Expr:
    return call("add_micros", time, call("*", number, Literal(length, BIGINT)))


def _spread(
    ctx: Context,
    plan: Node,
    value: Expr,
    new: tuple[Column, Column],
    made: Split | Hops | Cumulations | Series | Elements,
) -> Node | None:
    """Extend the scan from which a value is read by the parts of the value.

    Returns None if the value is not read from one scan, or if rows of that are counted before.
    """
    read = {c.id for c in columns(value)}
    if not read or not read <= {c.id for c in plan.output}:
        return None
    match plan:
        case Scan(relation, alias, fields) if not relation.is_computed:
            numbered: dict[int, Expr] = {c.id: replace(c, id=i) for i, c in enumerate(fields)}
            parts = Parts(relation, substitute(value, numbered), made)
            return Scan(_relation(ctx, parts), alias, (*fields, *new))
        case Filter(child, predicate):
            inner = _spread(ctx, child, value, new, made)
            return inner and Filter(inner, predicate)
        case Window(child, spec, time) if time is not None:
            inner = _spread(ctx, child, value, new, made)
            return inner and Window(inner, spec, time)
        case Project(child, items):
            below = substitute(value, {c.id: expr for c, expr in items})
            inner = _spread(ctx, child, below, new, made)
            return inner and Project(inner, (*items, *((c, c) for c in new)))
        case Join(left, right) | Apply(left, right, ApplyKind.CROSS):
            if inner := _spread(ctx, left, value, new, made):
                return with_inputs(plan, (inner, right))
            inner = _spread(ctx, right, value, new, made)
            return inner and with_inputs(plan, (left, inner))
        case ConditionalJoin(left, right) | Apply(left, right):
            inner = _spread(ctx, left, value, new, made)
            return inner and with_inputs(plan, (inner, right))
    return None


def _relation(ctx: Context, parts: Parts) -> Relation:
    """Return the relation of parts, which all that ask for the same parts share."""
    known = ctx.catalog.parts
    if parts not in known:
        base, first = parts.of, min(columns(parts.value), key=lambda c: c.id).name
        names, taken = {relation.name for relation in known.values()}, {f.name.lower() for f in base.fields}
        name = next(n for n in _name_numbered(f"{base.name}·{first}") if n not in names)
        match parts.generator:
            case Split(kept=kept) | Series(kept=kept) | Elements(kept=kept) as made:
                new = _new_fields(parts.value, made, kept)
            case Hops() | Cumulations():
                new = [(name, TIMESTAMP, False) for name in BOUNDS]
        fields = [Field(next(n for n in _name_numbered(f) if n not in taken), type, null) for f, type, null in new]
        known[parts] = replace(
            base, name=name, fields=(*base.fields, *fields), primary_key=(), references=(), parts=parts
        )
    return known[parts]


def _name_numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}{i}" for i in range(2, 1000))
