"""The columns that a query block can name."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.base.types import NULL
from squallpy.catalog.catalog import qualify_name, resolve_schema
from squallpy.frontend.unsupported import FUNCTIONS, NODES, NOW, QUERIES, Unsupported
from squallpy.logical.apply import Domain
from squallpy.logical.bind.context import Context
from squallpy.logical.expressions import Column, Expr, Literal

if TYPE_CHECKING:
    from squallpy.logical.bind.expressions import Scalars


@dataclass(frozen=True, slots=True)
class FromItem:
    """A table, view or subquery in FROM.

    Args:
        schema: that in which a table without alias is.
        node: how it is written; None if it reads what is beside it.
    """

    alias: str
    columns: tuple[Column, ...]
    schema: str = ""
    node: exp.Expr | None = field(default=None, repr=False, compare=False)
    _by_name: dict[str, list[Column]] = field(init=False, repr=False, compare=False)  # in lower case

    def __post_init__(self) -> None:
        named = defaultdict[str, list[Column]](list)
        for column in self.columns:
            named[column.name.lower()].append(column)
        object.__setattr__(self, "_by_name", dict(named))

    @property
    def name(self) -> str:
        return qualify_name(self.schema, self.alias)

    def find_columns(self, name: str) -> Sequence[Column]:
        return self._by_name.get(name.lower(), ())


@dataclass(slots=True)
class Scope:
    """The sources of FROM in order; `merged_columns` are the columns joined with USING, which need no qualifier.

    `places` says in the place of which column * has a merged one.
    """

    sources: list[FromItem] = field(default_factory=list)
    merged_columns: dict[str, Column] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    hidden_ids: set[int] = field(default_factory=set)  # the right sides of USING, which * leaves out
    nulls: set[int] = field(default_factory=set)  # the columns that a query in FROM has a bare NULL for, of any type
    outer: "Outer | None" = None  # what is around the query, asked for what is not found here

    def add(self, ctx: Context, source: FromItem, node: exp.Expr) -> None:
        """Add a source; SQ2007 if its alias is taken."""
        if source.alias and any(s.name.lower() == source.name.lower() for s in self.sources):
            raise ctx.error("SQ2007", f'"{source.alias}" is named twice in FROM', node, "give one of them an alias")
        self.sources.append(source)

    def take(self, ctx: Context, other: "Scope", node: exp.Expr) -> None:
        """Take over the sources of another scope."""
        for source in other.sources:
            self.add(ctx, source, node)
        if self.merged_columns.keys() & other.merged_columns.keys():
            raise ctx.refuse(node, QUERIES["USING twice"])
        self.merged_columns |= other.merged_columns
        self.places |= other.places
        self.hidden_ids |= other.hidden_ids
        self.nulls |= other.nulls

    def source(self, ctx: Context, node: exp.Column) -> FromItem | None:
        """Find the source that qualifies a column, None if nothing does; SQ2001 for none, SQ2002 for two."""
        table, schema = node.args.get("table"), node.args.get("db")
        if table is None:
            return None
        found = [s for s in self.sources if s.alias.lower() == table.name.lower()]
        if schema is not None:
            found = [s for s in found if s.schema.lower() == resolve_schema(schema.name).lower()]
        if len(found) == 1:
            return found[0]
        if found:
            raise ctx.error(
                "SQ2002", f'ambiguous table "{table.name}"', table, f"write {found[0].name} or {found[1].name}"
            )
        name = f"{schema.name}.{table.name}" if schema is not None else table.name
        hint = nearest(name, [s.name for s in self.sources if s.alias])
        raise ctx.error("SQ2001", f'unknown table "{name}" in FROM', schema or table, hint)

    def find(self, name: str) -> list[Column]:
        """List the columns of an unqualified name."""
        found = [column for source in self.sources for column in source.find_columns(name)]
        merged = self.merged_columns.get(name.lower())
        if merged is None:
            return found
        parts = {*self.hidden_ids, *self.places, merged.id}  # a source that came later has the name for itself
        return [merged, *(c for c in found if c.id not in parts)]

    def value(self, column: Column) -> Expr:
        """Return the value of a column: itself, or the NULL that it is."""
        return Literal(None, NULL) if column.id in self.nulls else column

    def resolve(self, ctx: Context, node: exp.Column) -> Expr:
        """Find the column that a reference means, or its NULL; SQ2001, SQ2002 or SQ2003 if it means none or several."""
        try:
            return self.value(self.find_own_column(ctx, node))
        except SquallError as error:
            if error.code not in ("SQ2001", "SQ2003"):
                raise
            if self.outer is not None:
                try:
                    return self.outer.resolve(ctx, node)
                except SquallError as further:
                    if further.code in ("SQ2002", "SQ3001"):
                        raise
            parts = [part.name for part in (node.args.get("db"), node.args.get("table")) if part is not None]
            if error.code == "SQ2001" and any(self.find(part) for part in parts):
                raise ctx.refuse(node, NODES["Dot"]) from None
            if error.code == "SQ2003" and not parts and node.name.upper() in NOW:
                raise ctx.refuse(node, Unsupported(node.name.upper(), "", FUNCTIONS[node.name.upper()])) from None
            raise error from None

    def has(self, ctx: Context, node: exp.Column) -> bool:
        """True if a reference means something of this very block, be it several columns."""
        try:
            self.find_own_column(ctx, node)
        except SquallError as error:
            return error.code == "SQ2002"
        return True

    def find_own_column(self, ctx: Context, node: exp.Column) -> Column:
        """Find the column of this very block that a reference means."""
        ctx.refuse_other_args(node, "this", "table", "db")
        name, table = node.name, node.args.get("table")
        if table and len(bound := self.find(f"{table.name}.{name}")) == 1:  # of a window: see `time_buckets.py`
            return bound[0]
        source = self.source(ctx, node)
        found = source.find_columns(name) if source else self.find(name)
        if len(found) == 1:
            return found[0]
        if found:
            owners = [s.name for s in self.sources if s.find_columns(name)]
            hint = f"write {' or '.join(f'{o}.{name}' for o in owners)}" if len(owners) > 1 and not source else ""
            raise ctx.error("SQ2002", f'ambiguous column "{name}"', node.this, hint)
        known = [c.name for s in ([source] if source else self.sources) for c in s.columns]
        raise ctx.error("SQ2003", f'unknown column "{name}"', node.this, nearest(name, known))

    def star(self) -> list[Column]:
        """List the columns of *."""
        shown = [c for source in self.sources for c in source.columns if c.id not in self.hidden_ids]
        return [self.merged_columns[self.places[c.id]] if c.id in self.places else c for c in shown]

    def star_columns(self) -> list[tuple[str, Column]]:
        """Pair the columns of * with the aliases of their sources, '' for one that FULL JOIN … USING makes of two."""
        owners = {c.id: source.name for source in self.sources for c in source.columns}
        return [(owners.get(c.id, ""), c) for c in self.star()]

    def update(self, output: tuple[Column, ...]) -> None:
        """Take the columns as a plan has them: below an outer join they may be NOT NULL, above it not."""
        now = {c.id: c for c in output}
        self.sources = [replace(s, columns=tuple(now[c.id] for c in s.columns)) for s in self.sources]
        self.merged_columns = {name: now[c.id] for name, c in self.merged_columns.items()}


@dataclass(frozen=True, slots=True)
class Outer:
    """The surroundings of a query: a scope, and the domain of the columns that the query reads from it.

    `clause` binds the clause in which a subquery of an expression stands.
    """

    scope: Scope
    domain: Domain
    clause: "Scalars | None" = None

    def outer_reference(self, ctx: Context, expr: Expr) -> Column:
        """Return the domain's column for an expression over the scope, which is new at its first reading."""
        if expr not in self.domain.columns:
            name = expr.name if isinstance(expr, Column) else str(expr)
            self.domain.columns[expr] = ctx.column(name, expr.type, expr.nullable)
        return self.domain.columns[expr]

    def resolve(self, ctx: Context, node: exp.Column) -> Expr:
        """Resolve a reference in the scope to a column of the domain; SQ2001, SQ2002 or SQ2003 if there is none."""
        found = self.scope.resolve(ctx, node)
        return self.outer_reference(ctx, found) if isinstance(found, Column) else found


def seen_from(inside: Outer | None, outer: Outer | None) -> Outer | None:
    """Return `outer` as a query `inside` it reads it, through the domains between: a WITH query reads what its WITH
    does."""
    if inside is None or outer is None or inside is outer:
        return outer if inside else None
    return Outer(Scope(outer=seen_from(inside.scope.outer, outer)), inside.domain)
