"""The state that all parts of the binder share: the query's text, the catalog, new columns, and how to refuse."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.errors import Notice, Span, SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import Kind
from squallpy.catalog.catalog import Catalog
from squallpy.catalog.relation import Relation
from squallpy.frontend.query import SelectText
from squallpy.frontend.unsupported import CLAUSES, NODES, Unsupported
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.constant_folding import Evaluate, only_literals
from squallpy.logical.expressions import Expr, Literal, columns
from squallpy.logical.nodes import Node

if TYPE_CHECKING:
    from squallpy.logical.bind.scope import Outer
    from squallpy.logical.bind.stream_windows import WindowScope


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A WITH query: its AST, the names of its columns if given, its context, and the outer query around it."""

    query: exp.Expr
    columns: tuple[str, ...]
    context: "Context"
    outer: "Outer | None" = None
    plan: Node | None = None
    """Its plan, if it was bound for its mistakes, and reads nothing around it."""
    make: "Callable[[Context], Node] | None" = None
    """Binds its rows, if it reads itself."""
    working: Relation | None = None
    """The working table that its name stands for in the queries that derive its rows."""


@dataclass(frozen=True, slots=True)
class Context(ColumnAllocator):
    """One query text being bound; views and WITH queries are bound with contexts of their own but the same ids.

    `evaluate` gives the value of an expression that reads no column, None where it has none.
    """

    catalog: Catalog
    query: SelectText
    ctes: Mapping[str, CommonTable] = field(default_factory=dict)
    working: frozenset[str] = frozenset()
    """Names of the working tables of the recursive queries around, in lower case."""
    window: "WindowScope | None" = None
    evaluate: Evaluate = only_literals
    rehearses: bool = False
    """True if the query is bound only for its mistakes and the names of its columns."""

    def inside(self, query: SelectText) -> "Context":
        """Make the context of a view's text, which is under the window of the view's reader."""
        return replace(self, query=query, ctes={})

    def rehearsal(self) -> "Context":
        """Make a context with ids of its own, to check a query that is bound again where it is used."""
        return replace(self, ids=self.catalog.spare, rehearses=True)

    def constant(self, expr: Expr) -> Literal | None:
        """Evaluate an expression that reads no column; None where it does, or has no value."""
        if isinstance(expr, Literal):
            return expr
        return None if columns(expr) or expr.type.kind is Kind.INTERVAL else self.evaluate(expr)

    def fold(self, expr: Expr) -> Expr:
        """Replace an expression that is constant by its value: 1 - 0.25  →  0.75"""
        return self.constant(expr) or expr

    def span(self, node: exp.Expr) -> Span:
        return self.query.span(node)

    @contextmanager
    def at(self, node: exp.Expr) -> Iterator[None]:
        """Point errors that name no place at a node."""
        try:
            yield
        except SquallError as error:
            raise (error if error.span else error.at(self.span(node))) from None  # NB: to find a span takes a walk

    def error(self, code: str, message: str, node: exp.Expr, hint: str = "") -> SquallError:
        return SquallError(code, message, self.span(node), hint)

    def note(self, message: str, node: exp.Expr, hint: str = "") -> None:
        """Tell the user something about a query that runs."""
        self.catalog.notices.setdefault(Notice(message, self.span(node), hint))

    def refuse(self, node: exp.Expr, construct: Unsupported | None = None) -> SquallError:
        """Make the SQ3001 of a construct, by default that of the node's class, at its keyword or the node."""
        what = construct or NODES.get(type(node).__name__) or Unsupported(f"{type(node).__name__.upper()} here")
        span = self.query.keyword(node, what.keyword) if what.keyword else self.span(node)
        return SquallError("SQ3001", f"{what.name} is not supported yet", span, what.hint)

    def refuse_other_args(self, node: exp.Expr, *handled: str) -> None:
        """Refuse a node that says more than the arguments handled: nothing is silently dropped."""
        for key, value in node.args.items():
            if key in handled or value is None or value is False or value == [] or value == "":
                continue
            kind = type(node).__name__
            known = CLAUSES.get(f"{kind}.{key}") or CLAUSES.get(key)
            construct = known or Unsupported(f"{key.strip('_').replace('_', ' ').upper()} of {kind.upper()}")
            parts = value if isinstance(value, list) else [value]
            raise self.refuse(next((p for p in parts if isinstance(p, exp.Expr)), node), construct)
