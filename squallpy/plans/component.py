"""Components: the operators of a plan that is put together by hand, each checked by its constructor.

A component describes its operator, and binds it to logical nodes with the inputs below; those of a plan have ids of one
context, so that a component can be an input several times.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sqlglot import exp

from squallpy.base.call_site import call_site
from squallpy.base.errors import SquallError
from squallpy.base.pinned_component import PinnedComponent
from squallpy.base.records import dataclass
from squallpy.base.types import BOOLEAN, Kind
from squallpy.catalog.catalog import Catalog
from squallpy.frontend.declaration_text import quote_name
from squallpy.frontend.query import SelectText, parse_select
from squallpy.frontend.source_text import ScriptText
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.scope import FromItem, Scope
from squallpy.logical.bind.select import QueryBlock
from squallpy.logical.expressions import Column, Expr, Literal
from squallpy.logical.nodes import Node
from squallpy.logical.plan_properties import check_size
from squallpy.plans.choices import Choices, read_choices
from squallpy.runtime.evaluate.constant_evaluation import fold_constant

Texts = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Bound:
    """A component's logical plan, and the names that what is above it may read."""

    node: Node
    scope: Scope


class Component:
    """Base of the components.

    Args:
        name: The qualifier of its columns, and what messages and EXPLAIN call it.
        inputs: The components below it.
    """

    def __init__(self, name: str, *inputs: "Component") -> None:
        self.name, self.inputs, self.site = name, inputs, call_site()
        if wrong := next((each for each in inputs if not isinstance(each, Component)), None):
            raise self.error("SQ2005", f"an input is a component, not a {type(wrong).__name__}")

    @property
    def kind(self) -> str:
        """The name of the operator."""
        return type(self).__name__

    def bind(self, ctx: Context) -> Bound:
        """Bind the component, with all below it, to new columns."""
        raise NotImplementedError

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its rows."""
        return self.check().node.output

    def check(self) -> Bound:
        """Bind the component for its mistakes, and for the names and types of its columns."""
        return self.bind(new_context())

    def walk(self) -> Iterator["Component"]:
        """Yield the component and those below it, inputs first, each once."""
        seen = dict[int, Component]()

        def visit(component: Component) -> None:
            if id(component) not in seen:
                for each in component.inputs:
                    visit(each)
                seen[id(component)] = component

        visit(self)
        yield from seen.values()

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the streams and tables that it reads."""
        return tuple(sorted({name for each in self.inputs for name in each.relations}))

    def pinned(self) -> PinnedComponent | None:
        """Return what is pinned of its physical plan; None if it has no state."""
        return None

    def read_choices(
        self, partitioning: str | None, operator: str | None, parallelism: int | None, schemes: tuple[str, ...]
    ) -> Choices:
        """Read physical choices; SQ7003, at the place of one, for those that are impossible."""
        try:
            return read_choices(partitioning, operator, parallelism, schemes)
        except SquallError as error:
            raise self.error(error.code, error.message, error.hint, partitioning or operator or "") from None

    def edge(self, *inputs: "Component") -> str:
        """Name the edges from inputs: customer, orders → EquiJoin customer_orders"""
        return f"{', '.join(each.name for each in inputs or self.inputs)} → {self.kind} {self.name}"

    def error(self, code: str, message: str, hint: str = "", text: str = "") -> SquallError:
        """Make an error at a text of the component's call."""
        return SquallError(code, f"{self.kind} {self.name}: {message}", self.site.span(text), hint)

    @contextmanager
    def locating(self, where: str, last: bool = False) -> Iterator[None]:
        """Point errors at the line of Python that the text stands in, and name where in the plan that is."""
        try:
            yield
        except SquallError as error:
            place, site = error.span, self.site
            span = site.span(place.text, place.column, place.length, last) if place else site.span()
            raise SquallError(error.code, f"{where}: {error.message}", span, error.hint) from None

    def expression(self, ctx: Context, scope: Scope, text: str, edge: str, last: bool = False) -> Expr:
        """Bind the text of an expression over the columns of some inputs; `last`: the last such text of the call."""
        with self.locating(edge, last):
            query = parse_items([text])
            if len(query.ast.expressions) != 1:
                raise SquallError("SQ1001", f'"{text}" is not one expression', query.script.span(7, 7 + len(text)))
            (item,) = query.ast.expressions
            if inner := item.find(exp.Query):
                hint = "join with what it reads"
                raise SquallError("SQ3001", f"a subquery in {self.kind} is not supported", query.span(inner), hint)
            return Scalars(replace(ctx, query=query), scope, self.kind).bind(item)

    def condition(self, ctx: Context, scope: Scope, text: str) -> Expr:
        """Bind the text of a predicate over the columns of all inputs."""
        bound = self.expression(ctx, scope, text, self.edge())
        if bound.type.kind is Kind.NULL:
            return Literal(None, BOOLEAN)
        if bound.type != BOOLEAN:
            raise self.error("SQ2005", f"it needs a condition, this is {bound.type}", text=text)
        return bound


class Chained(Component):
    """Base of the components with one input, under whose name their columns are unless they have one of their own."""

    def __init__(self, input: Component, name: str | None) -> None:
        super().__init__(name or str(getattr(input, "name", "?")), input)

    @property
    def input(self) -> Component:
        return self.inputs[0]

    def block(self, ctx: Context, below: Bound, query: SelectText, is_ordered: bool = False) -> tuple[Node, bool]:
        """Bind a query block whose FROM is the input; also tells whether it has groups."""
        with self.locating(self.edge()):
            context = replace(ctx, query=query)
            assert isinstance(query.ast, exp.Select)
            block = QueryBlock(context, query.ast, is_ordered=is_ordered, source=(below.node, below.scope))
            node = block.bind()
            check_size(node)
            return node, block.is_grouping

    def named(self, node: Node) -> Bound:
        """Give the columns of a plan the component's name."""
        return Bound(node, Scope([FromItem(self.name, node.output)]))


def new_context(catalog: Catalog | None = None) -> Context:
    """Make the context of a plan; the text of each expression replaces its query."""
    nothing = SelectText(ScriptText("", ""), 0, 0, exp.Select())
    return Context(catalog or Catalog(), nothing, evaluate=fold_constant)


def parse_items(texts: Sequence[str], clauses: str = "") -> SelectText:
    """Parse a select list whose items are texts of users, each on lines of its own; SQ3001 for any other clause."""
    text = "SELECT\n" + "\n,\n".join(texts) + f"\n{clauses}"
    query = parse_select(ScriptText(text, ""), 0, len(text))
    allowed = ("expressions", *(("order", "limit", "offset") if clauses else ()))
    new_context().inside(query).refuse_other_args(query.ast, *allowed)
    return query


def item_text(text: str, name: str) -> str:
    """Write an item of a select list under a name."""
    return f"{text}\nAS {quote_name(name)}"


def as_texts(texts: Texts) -> tuple[str, ...]:
    """Make a sequence of one text or of several."""
    return (texts,) if isinstance(texts, str) else tuple(texts)
