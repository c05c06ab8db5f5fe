"""Joins that several statements of a trigger have in common, computed once a batch.

    Q(k)    += Sum_[k](ΔA(k, j) ⋈ M_B(j))        P1(k)   := Sum_[k](ΔA(k, j) ⋈ M_B(j))
    M_AB(k) += Sum_[k](ΔA(k, j) ⋈ M_B(j))   →    Q(k)    += Sum_[k](P1(k))
                                                 M_AB(k) += Sum_[k](P1(k))

So it is with a view and the queries over it: their result is the view's, and what they aggregate is made of its groups.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import count

from squallpy.base.records import dataclass
from squallpy.base.rings import Ring
from squallpy.logical.expressions import Column, Expr, substitute
from squallpy.program.calculus import Lane, rename_factor, variables
from squallpy.program.trigger_program import Statement, Trigger, TriggerProgram
from squallpy.program.views import Ref

Product = tuple[tuple[int, ...], Hashable]  # the lanes that a lane multiplies, and its own factors


def share_products(program: TriggerProgram) -> TriggerProgram:
    """Let statements that join the same deltas and views add one partial product."""
    numbers = count(1)
    plain = {view.name for view in program.views if all(isinstance(ring, Ring) for ring in view.rings)}
    return replace(program, triggers=tuple(_share(trigger, plain, numbers) for trigger in program.triggers))


def _share(trigger: Trigger, plain: set[str], numbers: Iterator[int]) -> Trigger:
    """Share the products of a trigger; `plain` are the views whose lanes are numbers."""
    joins = defaultdict[Hashable, list[_Join]](list)
    for number, statement in enumerate(trigger.statements):
        if len(statement.refs) > 1 and statement.target in plain and not statement.partial:
            join = _Join.of(number, statement)
            joins[join.key].append(join)
    statements = [[statement] for statement in trigger.statements]
    for same in joins.values():
        if len(same) > 1:
            partial, *rest = _factored(f"P{next(numbers)}", same)
            for join, statement in zip(same, rest, strict=True):
                statements[join.number] = [statement]
            statements[same[0].number].insert(0, partial)
    return replace(trigger, statements=tuple(s for some in statements for s in some))


@dataclass(frozen=True, slots=True)
class _Join:
    """The join of a statement.

    Args:
        number: The number of the statement in its trigger.
        refs: What it joins, in an order that does not depend on how the query is written.
        names: Names of its variables, by id, that are the same in joins that are equal.
    """

    number: int
    statement: Statement
    refs: tuple[Ref, ...]
    names: dict[int, Column]

    @staticmethod
    def of(number: int, statement: Statement) -> "_Join":
        delta, *others = statement.refs
        refs, names = (delta, *sorted(others, key=lambda ref: ref.name)), dict[int, Column]()
        inside = [v for f in statement.filters for v in sorted(variables(f), key=lambda v: v.id)]
        for v in (*(v for ref in refs for v in ref.bound_variables), *inside):
            names.setdefault(v.id, Column(len(names), "", v.type, v.nullable))
        return _Join(number, statement, refs, names)

    @property
    def products(self) -> tuple[Product | None, ...]:
        """Its lanes; None for those that add nothing."""
        return tuple(
            None
            if lane is None
            else (tuple(r.picks[n] for r in self.refs if r.picks), _canonical(lane, {**self.names}))
            for n, lane in enumerate(self.statement.lanes)
        )

    @property
    def columns(self) -> dict[Column, Column]:
        """Its variables by those names."""
        inside = (v for factor in self.statement.filters for v in variables(factor))
        own = (*(v for ref in self.refs for v in ref.bound_variables), *inside)
        return {self.names[v.id]: v for v in own}

    @property
    def key(self) -> Hashable:
        """A value that is equal for joins that are equal but for the names of variables."""
        statement, names = self.statement, self.names
        read = tuple(
            (ref.name, ref.is_after, _row(ref), tuple(names[v.id] for v in ref.bound_variables)) for ref in self.refs
        )
        filters = frozenset(rename_factor(factor, {**names}) for factor in statement.filters)
        return read, filters, frozenset(names[v.id] for v in statement.keys)


def _row(ref: Ref) -> Hashable:
    """Describe which fields of an auxiliary relation's row are read, and when."""
    return ref.row and (ref.row.relation, ref.row.is_before, tuple(title for title, _ in ref.row.fields))


def _canonical(lane: Lane, names: dict[int, Expr]) -> Hashable:
    """Rename the factors of a lane, whose order does not matter."""
    return frozenset(Counter(substitute(factor, names) for factor in lane).items())


def _factored(name: str, joins: Sequence[_Join]) -> Iterator[Statement]:
    """Yield the partial product of equal joins, in the variables of the first, and the statements that add it."""
    first, *_ = joins
    sources, every = dict[Product, tuple[_Join, int]](), [join.products for join in joins]
    for join, products in zip(joins, every, strict=True):
        for number, product in enumerate(products):
            if product is not None:
                sources.setdefault(product, (join, number))
    columns, lanes = first.columns, list[Lane]()
    for join, number in sources.values():
        mine: dict[int, Expr] = {id: columns[name] for id, name in join.names.items()}
        lanes.append(tuple(substitute(factor, mine) for factor in join.statement.lanes[number] or ()))
    picks = (
        tuple(join.refs[at].picks[n] for join, n in sources.values()) if r.picks else ()
        for at, r in enumerate(first.refs)
    )
    refs = tuple(replace(ref, picks=own) for ref, own in zip(first.refs, picks, strict=True))
    keys, order = first.statement.keys, [*sources]
    yield Statement(name, keys, refs, first.statement.filters, tuple(lanes), partial=True)
    for join, products in zip(joins, every, strict=True):
        columns = join.columns
        own = tuple(columns[first.names[key.id]] for key in keys)
        numbers = tuple(-1 if product is None else order.index(product) for product in products)
        added = tuple(None if product is None else () for product in products)
        yield replace(join.statement, refs=(Ref(name, own, numbers),), filters=(), lanes=added)
