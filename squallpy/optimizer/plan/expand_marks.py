"""Replacement of the marks of IN, ANY and ALL, which may be NULL, by the EXISTS that they are made of.

    σ_{NOT mark}(Apply MARK mark (r, S) on a = e)
 →  σ_{NOT CASE WHEN found IS NOT NULL THEN TRUE WHEN a IS NULL AND found₂ IS NOT NULL OR found₃ IS NOT NULL THEN NULL
            ELSE FALSE END}
      (Apply EXISTS found₃ (Apply EXISTS found₂ (Apply EXISTS found (r, S) on a = e, S), σ_{e IS NULL}(S)))

All of them read one plan S: copies would double and treble with each level of an IN inside an IN.

Source: Neumann, Leis, Kemper, "The Complete Story of Joins (in HyPer)", BTW 2017, for the mark join.
"""

from dataclasses import field, replace

from squallpy.base.records import dataclass
from squallpy.base.types import BOOLEAN
from squallpy.logical.apply import Apply, ApplyKind, Domain, domains
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import (
    FALSE,
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    columns,
    conjunction,
    conjuncts,
    disjunction,
    is_null,
    not_null,
    substitute,
)
from squallpy.logical.nodes import (
    Aggregate,
    ConditionalJoin,
    Filter,
    GroupingSets,
    Join,
    Node,
    Project,
    Sort,
    TopN,
    WindowFunctions,
    with_inputs,
)
from squallpy.optimizer.pass_manager import expressions, top_down, with_expressions

Marks = dict[int, Expr]  # the values of marks, by id, that a plan has no columns for
KEEPS_COLUMNS = Filter | Sort | TopN | WindowFunctions | Apply | Join | ConditionalJoin  # those of its first input
MAKES_COLUMNS = Project | Aggregate | GroupingSets


def expand_marks(plan: Node, context: ColumnAllocator) -> Node:
    """Replace each MARK of a plan by EXISTS, and its mark by an expression over what these find."""
    return _Expansion(context).close(plan)


@dataclass(frozen=True, slots=True)
class _Expansion:
    """The expansion of a plan, in which each operator is expanded once, however many others read it."""

    context: ColumnAllocator
    known: dict[int, tuple[Node, Node, Marks]] = field(default_factory=dict)

    def close(self, node: Node) -> Node:
        """Expand the marks of a plan, and compute those that come out of it."""
        after, marks = self.open(node)
        return Project(after, tuple((c, marks.get(c.id, c)) for c in node.output)) if marks else after

    def open(self, node: Node) -> tuple[Node, Marks]:
        """Expand the marks of a plan; returned with the values of those that it has no columns for any more."""
        if id(node) not in self.known:
            self.known[id(node)] = node, *self.expand(node)
        return self.known[id(node)][1:]

    def expand(self, node: Node) -> tuple[Node, Marks]:
        """Expand an operator and its inputs."""
        if not isinstance(node, KEEPS_COLUMNS | MAKES_COLUMNS):
            return with_inputs(node, tuple(map(self.close, node.inputs))), {}
        (first, *_), (below, marks) = node.inputs, self.open(node.inputs[0])
        others = tuple(map(self.close, node.inputs[1:]))
        if marks:
            both = dict.fromkeys((*first.output, *below.output))  # what the operator reads before and after
            node = with_inputs(node, (Project(below, tuple((c, marks.get(c.id, c)) for c in both)), *others))
            node = with_expressions(node, tuple(substitute(expr, marks) for expr in expressions(node)))
        after = with_inputs(node, (below, *others))
        if isinstance(after, Apply) and after.kind is ApplyKind.MARK:
            (mark,) = after.outputs
            after, value = self.tests(after)
            marks = {**marks, mark.id: value}
        return after, marks if isinstance(node, KEEPS_COLUMNS) else {}

    def tests(self, apply: Apply) -> tuple[Node, Expr]:
        """Apply the EXISTS that a mark is made of; returned with its value."""
        plan, comparisons = apply.left, _comparisons(apply.on)
        values = [value for _, value, _ in comparisons]

        def exists(subquery: Apply, within: Expr = TRUE, on: Expr = TRUE) -> Expr:
            nonlocal plan
            right = Filter(subquery.right, within) if within != TRUE else subquery.right
            marker = self.context.column("found", BOOLEAN, True)
            plan = Apply(plan, right, ApplyKind.EXISTS, subquery.parameters, on, (marker,), apply.span)
            return not_null(marker)

        if all(operator == "=" for operator, _, _ in comparisons):
            found = exists(apply, on=apply.on)
        else:
            inside, given = self.with_parameters(apply, values)
            found = exists(inside, conjunction(call(name, given.get(v, v), option) for name, v, option in comparisons))
        if not apply.on.nullable:
            return plan, found
        if len(comparisons) == 1:
            ((_, value, option),) = comparisons
            tests = [conjunction((is_null(value), exists(apply)))] if value.nullable else []
            tests += [exists(apply, is_null(option))] if option.nullable else []
            unknown = disjunction(tests)
        else:
            inside, given = self.with_parameters(apply, values)
            pairs = [(given.get(value, value), option) for _, value, option in comparisons]
            unknown = exists(inside, conjunction(_equal_but_for_nulls(*pair) for pair in pairs))
        return plan, case([(found, TRUE), (unknown, Literal(None, BOOLEAN))], FALSE)

    def with_parameters(self, apply: Apply, values: list[Expr]) -> tuple[Apply, dict[Expr, Column]]:
        """Make values parameters of a subquery, but for constants; returned with the column of each."""
        known = {expr: column for column, expr in apply.parameters}
        new = {v: self.context.column("given", v.type, v.nullable) for v in values if columns(v) and v not in known}
        if not new:
            return apply, known
        parameters = (*apply.parameters, *((column, value) for value, column in new.items()))
        domain, known_domains = Domain(), set(map(id, domains(apply.right)))
        domain.columns = {column: column for column, _ in parameters}  # NB: two may stand for equal expressions
        wider = top_down(apply.right, lambda node: domain if id(node) in known_domains else None)
        right = wider if known_domains else Join(domain, apply.right)
        return replace(apply, right=right, parameters=parameters), known | new


def _comparisons(on: Expr) -> tuple[tuple[str, Expr, Expr], ...]:
    """Split the condition of a MARK into operators, values, and columns of the subquery."""
    found = list[tuple[str, Expr, Expr]]()
    for conjunct in conjuncts(on):
        assert isinstance(conjunct, Call)
        value, option = conjunct.args
        found.append((conjunct.name, value, option))
    return tuple(found)


def _equal_but_for_nulls(a: Expr, b: Expr) -> Expr:
    """Test whether two values may be equal, a NULL being any value."""
    return disjunction((*(is_null(side) for side in (a, b) if side.nullable), call("=", a, b)))
