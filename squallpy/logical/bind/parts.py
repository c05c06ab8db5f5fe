"""EXPLODE(SPLIT(x, p)) → a scan of a relation that has a row for each part of a text; and windows that overlap alike.

    lines LATERAL VIEW EXPLODE(SPLIT(LOWER(line), ' ')) t AS word   →   Scan lines·line: line, part word, its position
    GROUP BY WINDOW(at, '10 minutes', '5 minutes')                  →   Scan lines·at: line, start and end of each

A text is cut where its row is read, before anything is joined: whatever is joined to a row is joined to each of its
parts, so what changes is linear, and costs nothing beyond the rows that it makes.
"""

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from squallpy.base.types import INT, TIMESTAMP, VARCHAR
from squallpy.catalog.relation import Field, Hops, Parts, Relation, Split
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.buckets import BOUNDS, NAME, hops, is_window
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.scalar import Scalars
from squallpy.logical.bind.scope import Scope, Source
from squallpy.logical.bind.split import splitting
from squallpy.logical.expressions import Column, Expr, columns, substitute
from squallpy.logical.nodes import ConditionalJoin, Filter, Join, Node, Project, Scan, Window

GENERATORS = ("EXPLODE", "POSEXPLODE", "EXPLODE_OUTER", "POSEXPLODE_OUTER")


def _generator(node: exp.Expr) -> str:
    """The name of a call that makes rows, '' of anything else."""
    name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
    return name if name in GENERATORS else ""


def in_from(select: exp.Select) -> exp.Select:
    """SELECT EXPLODE(x) AS w FROM r   →   SELECT w FROM r LATERAL VIEW EXPLODE(x) AS w"""
    bare = [node.this if isinstance(node, exp.Alias | exp.Aliases) else node for node in select.expressions]
    if not any(map(_generator, bare)):
        return select
    out = select.copy()
    out.parent = select.parent
    items, views = list[exp.Expr](), list[exp.Expr]()
    for item in out.expressions:
        generator = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
        if _generator(generator):
            names = list(_names(item, generator))
            items += [exp.column(name.copy()) for name in names]
            views.append(exp.Lateral(this=generator, view=True, alias=exp.TableAlias(columns=names)))
        else:
            items.append(item)
    out.set("expressions", items)
    out.set("laterals", [*(out.args.get("laterals") or []), *views])
    return out


def _names(item: exp.Expr, generator: exp.Expr) -> Iterator[exp.Identifier]:
    """What the columns of a generator in SELECT are called."""
    if isinstance(item, exp.Aliases):
        yield from item.expressions
        return
    if _generator(generator).startswith("POS"):
        yield exp.to_identifier("pos")
    yield exp.to_identifier(item.alias if isinstance(item, exp.Alias) else "col")


def is_generator(node: exp.Expr) -> bool:
    """LATERAL EXPLODE(x) or UNNEST(x) in FROM?"""
    return (isinstance(node, exp.Lateral) and bool(_generator(node.this))) or isinstance(node, exp.Unnest)


def exploded(ctx: Context, scope: Scope, plan: Node, node: exp.Expr) -> Node:
    """The plan with the columns of a LATERAL VIEW, or of UNNEST, which are a new source of the scope."""
    alias, call = node.args.get("alias"), node
    if isinstance(node, exp.Unnest):
        ctx.only(node, "expressions", "alias")
    else:
        ctx.only(node, "this", "alias", "view", "outer")
        call = node.this
    scalars = Scalars(ctx, scope, "LATERAL VIEW")
    if is_window(call):
        return _windows(scalars, plan, node, call)
    if len(call.expressions) != 1 or not (_generator(call) or call is node):
        raise ctx.refuse(call, QUERIES["EXPLODE"])
    name, kept = _generator(call), bool(node.args.get("outer")) or _generator(call).endswith("OUTER")
    written, separator = splitting(ctx, call.expressions[0])
    text = scalars.bind(written)
    if text.type != VARCHAR:
        raise ctx.error("SQ2004", f"SPLIT of {text.type}", written, "it cuts VARCHAR")
    default = ("pos", "col") if name.startswith("POS") else ("col",)
    names = [c.name for c in (alias.args.get("columns") or [])] if alias else []
    if alias and names and len(names) != len(default):
        raise ctx.error("SQ2005", f"{len(names)} column names for {len(default)} columns", alias)
    *before, last = names or default
    part, position = ctx.column(last, VARCHAR, kept), ctx.column(next(iter(before), "pos"), INT, kept)
    made = _spread(ctx, plan, text, (part, position), Split(separator, kept))
    if made is None:
        raise ctx.refuse(written, QUERIES["EXPLODE of what is not read"])
    scope.add(ctx, Source(alias.name if alias else "", (position, part) if before else (part,)), node)
    return made


def _windows(s: Scalars, plan: Node, node: exp.Expr, call: exp.Expr) -> Node:
    """The plan with the windows of a time."""
    time = s.bind(exp.cast(call.expressions[0].copy(), "timestamp"))
    columns = tuple(s.ctx.column(name, TIMESTAMP, False) for name in BOUNDS)
    made = _spread(s.ctx, plan, time, (columns[0], columns[1]), hops(s.ctx, call))
    if made is None:
        raise s.ctx.refuse(call, QUERIES["WINDOW of what is not read"])
    s.scope.add(s.ctx, Source(NAME, columns), node)
    return made


def _spread(ctx: Context, plan: Node, value: Expr, new: tuple[Column, Column], made: Split | Hops) -> Node | None:
    """The plan whose scan of what a value is read from has its parts as well; None if it is not one scan's, or its rows
    are counted before."""
    read = {c.id for c in columns(value)}
    if not read or not read <= {c.id for c in plan.output}:
        return None
    match plan:
        case Scan(relation, alias, fields) if not relation.made:
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
        case Join(left, right, on):
            for sides in ((left, right), (right, left)):
                inner = _spread(ctx, sides[0], value, new, made)
                if inner:
                    return Join(inner, right, on) if sides[0] is left else Join(left, inner, on)
        case ConditionalJoin(left, right, on):
            inner = _spread(ctx, left, value, new, made)
            return inner and type(plan)(inner, right, on)
    return None


def _relation(ctx: Context, parts: Parts) -> Relation:
    """The relation of parts, one for all that ask for the same."""
    known = ctx.catalog.parts
    if parts not in known:
        base, first = parts.of, min(columns(parts.value), key=lambda c: c.id).name
        names, taken = {relation.name for relation in known.values()}, {f.name.lower() for f in base.fields}
        name = next(n for n in _numbered(f"{base.name}·{first}") if n not in names)
        match parts.made:
            case Split(kept=kept):
                new = [("part", VARCHAR, kept), ("position", INT, kept)]
            case Hops():
                new = [(name, TIMESTAMP, False) for name in BOUNDS]
        fields = [Field(next(n for n in _numbered(f) if n not in taken), type, null) for f, type, null in new]
        known[parts] = replace(
            base, name=name, fields=(*base.fields, *fields), primary_key=(), references=(), parts=parts
        )
    return known[parts]


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}{i}" for i in range(2, 1000))
