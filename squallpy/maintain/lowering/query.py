"""Logical plan → ring calculus: the query as one view, and how its rows are printed.

    Project(Aggregate(Filter(Join(Scan, Scan))))   →   Q(keys) = Sum_[keys](R ⋈ S ⋈ predicates ⋈ ⟨1, …⟩)  +  Finish

Equalities between two atoms become shared variables (computed ones where a side is an expression); lane 0 is the
count of rows, which says whether a group exists. An Aggregate below the top one becomes a *nest*: a relation of the
rows that it would print, which the rest of the query joins like any other.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from itertools import chain, count, zip_longest

from squallpy.base.types import BOOLEAN, VARCHAR, Type, common
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.constant_folding import Evaluate, fold_constant
from squallpy.logical.expressions import (
    TRUE,
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    Rewriter,
    column_of,
    columns,
    conjunction,
    conjuncts,
    is_null,
    not_null,
    substitute,
    uncast,
    walk,
)
from squallpy.logical.interning import Spelling
from squallpy.logical.monotonicity import FALLING, RISING, slope
from squallpy.logical.nodes import (
    Agg,
    Aggregate,
    AntiJoin,
    Filter,
    Join,
    LeftJoin,
    Limit,
    Node,
    Project,
    Query,
    Repeat,
    Scan,
    SemiJoin,
    Sort,
    Union,
    Window,
)
from squallpy.logical.nulls import fold_null
from squallpy.maintain.relational.linear import Polynomial, linear, present
from squallpy.optimizer.plan.groupjoin import Nothing, defaulted, without_case
from squallpy.optimizer.plan.materialise_outer_joins import bag, optional
from squallpy.optimizer.plan.split_aggregates import split_aggregates
from squallpy.program.calculus import MINUS, Assign, Cmp, Factor, Lane, Rel, renamed
from squallpy.program.components import prune
from squallpy.program.program import RESULT, Finish, Lowered, Measure, Monomial, Nest, View, nest_name


@dataclass(slots=True)
class Block:
    """A select-project-join block: its scans, its conjuncts and the columns that projections computed.

    A plan is a sum of blocks; one with `sign` −1 is taken away. `fold` makes less of expressions.
    """

    scans: list[Scan]
    conjuncts: list[Expr]
    computed: dict[int, Expr]
    fold: Callable[[Expr], Expr]
    sign: int = 1
    nothing: Nothing = field(default_factory=dict)

    def inline(self, expr: Expr) -> Expr:
        if not self.computed:
            return expr
        return without_case(self.fold(substitute(expr, self.computed)), self.nothing)

    def compute(self, new: Iterable[tuple[Column, Expr]]) -> None:
        """Know more columns."""
        self.computed |= {column.id: self.inline(expr) for column, expr in new}

    def restrict(self, predicate: Expr) -> None:
        every = dict.fromkeys((*self.conjuncts, *(_asked(self.inline(c)) for c in conjuncts(predicate))))
        self.conjuncts = [c for c in every if c != TRUE]

    def copy(self) -> "Block":
        """The same, to be restricted on its own."""
        parts = list(self.scans), list(self.conjuncts), dict(self.computed)
        return Block(*parts, self.fold, self.sign, dict(self.nothing))

    @property
    def empty(self) -> bool:
        """No row is let through, whatever is there."""
        return any(isinstance(c, Literal) and not c.value for c in self.conjuncts)


MOST = 8  # products that a query or nest is multiplied out to
Order = tuple[tuple[Expr, bool, bool], ...]
Items = tuple[tuple[str, Expr], ...]
Finished = tuple[Expr | None, Items, Order]  # HAVING, SELECT list, ORDER BY


def lower(query: Query, ids: Iterator[int], evaluate: Evaluate | None = None) -> Lowered:
    """Lower a bound query to a view of the ring calculus, not yet materialised, and the `Finish` that prints it.

    Args:
        ids: Ids for new columns.
        evaluate: Computes expressions that read no column once rows of constants are joined, if it is given.
    """
    node = query.plan
    limit, offset = None, 0
    if isinstance(node, Limit):
        limit, offset, node = node.count, node.offset, node.child
    above = _chain(node)
    bottom = above[-1].inputs[0] if above else node
    blocks = _Blocks(evaluate, ids)
    grouped, times = bottom, None
    if isinstance(bottom, Repeat) and bottom.number is None:
        grouped, times = bottom.child, bottom.times
    if isinstance(grouped, Aggregate) and not any(agg.extreme for _, agg in grouped.aggs):
        view, printed, measures = _grouped(RESULT, grouped, blocks)
        having, items, order = _finish(above, query.names, printed, node)
        single, times = not grouped.keys, times and substitute(times, printed)
        finish = Finish(measures, having, items, order, limit, offset, repeat=False, single=single, times=times)
    else:
        view, items, order = _bag(bottom, _finish(above, query.names, {}, node), blocks)
        finish = Finish((), None, items, order, limit, offset, repeat=True, single=False)
    return Lowered(view, finish, tuple(blocks.relations.values()), tuple(blocks.nests))


def _grouped(name: str, node: Aggregate, blocks: "_Blocks") -> tuple[View, dict[int, Expr], tuple[Measure, ...]]:
    """An Aggregate as a view; where its key columns are found, and its aggregates in terms of the view's lanes."""
    every = blocks.within(node.child)
    made = [[block.inline(expr) for _, expr in node.keys] for block in every]
    given = [[agg.arg and block.inline(agg.arg) for _, agg in node.aggs] for block in every]
    atoms = [
        _Atoms(block, (*exprs, *(arg for arg in args if arg is not None)), blocks.ids)
        for block, exprs, args in zip(every, made, given, strict=True)
    ]
    lanes = _Lanes(atoms)
    keys = [
        [a.variable(column, expr) for (column, _), expr in zip(node.keys, exprs, strict=True)]
        for a, exprs in zip(atoms, made, strict=True)
    ]
    measures = [
        lanes.measure(column, agg, [args[number] for args in given]) for number, (column, agg) in enumerate(node.aggs)
    ]
    shared = _shared(keys, blocks.ids)
    printed: dict[int, Expr] = {column.id: v for (column, _), v in zip(node.keys, shared, strict=True)}
    return _view(name, shared, keys, atoms, lanes), printed, tuple(measures)


def _bag(child: Node, finished: Finished, blocks: "_Blocks") -> tuple[View, Items, Order]:
    """A query without aggregates: every printed and every ordering expression is a key of a bag of rows."""
    having, items, order = finished
    keys: dict[Expr, Column] = {}
    for name, expr in (*items, *((str(expr), expr) for expr, _, _ in order)):
        keys.setdefault(expr, Column(next(blocks.ids), name, expr.type, expr.nullable))
    rows = child if having is None else Filter(child, having)
    view, printed, _ = _grouped(RESULT, Aggregate(rows, tuple((c, expr) for expr, c in keys.items()), ()), blocks)
    found = {expr: printed[column.id] for expr, column in keys.items()}
    shown = tuple((name, found[expr]) for name, expr in items)
    return view, shown, tuple((found[expr], down, nulls) for expr, down, nulls in order)


def _view(name: str, shared: list[Column], keys: list[list[Column]], atoms: list["_Atoms"], lanes: "_Lanes") -> View:
    """The sum of what the blocks contribute."""
    terms = tuple(
        block.term(mine, shared, tuple(lane[number] for lane in lanes.all))
        for number, (mine, block) in enumerate(zip(keys, atoms, strict=True))
    )
    return View(name, tuple(dict.fromkeys(shared)), terms)


def _shared(keys: list[list[Column]], ids: Iterator[int]) -> list[Column]:
    """The key variables of a view: those of its block, or new ones where several have to agree."""
    if len(keys) == 1:
        return keys[0]
    return [Column(next(ids), k[0].name, k[0].type, any(v.nullable for v in k)) for k in zip(*keys, strict=True)]


class _Many(Exception):
    """A plan multiplied out is too many products."""


class _Blocks:
    """Plans as sums of select-project-join blocks, with the relations met on the way and the nests made."""

    def __init__(self, evaluate: Evaluate | None, ids: Iterator[int]) -> None:
        self._fold, self.ids = _folding(evaluate), ids
        self.relations: dict[str, Relation] = {}
        self.nests: list[Nest] = []
        self._spelling = Spelling()
        self._known: dict[int, Nest] = {}  # by how it is spelled
        self._few = False  # are outer joins, and sums that are joined, nests?
        self._made: dict[tuple[bool, int], tuple[Node, list[Block]]] = {}  # by id, which is no other's while it is here

    def within(self, node: Node) -> list[Block]:
        """The blocks of all that is below an operator; with nests for what would make too many of them."""
        nests, known, made, few = self.nests[:], self._known.copy(), self._made.copy(), self._few
        try:
            self._few = False
            return self.of(node)
        except _Many:
            self.nests, self._known, self._made, self._few = nests, known, made, True
            return self.of(node)
        finally:
            self._few = few

    def of(self, node: Node) -> list[Block]:
        """The blocks of a plan, one's own; raises _Many if they are more than they have to be."""
        key = self._few, id(node)
        if key not in self._made:  # an outer join reads its left side twice, n of them the first one's 2ⁿ times
            every = self._of(node)
            if len(every) > MOST and not self._few:
                raise _Many
            self._made[key] = node, every
        return [block.copy() for block in self._made[key][1]]

    def _of(self, node: Node) -> list[Block]:
        match node:
            case Scan(relation):
                if all(nest.relation is not relation for nest in self.nests):
                    self.relations[relation.name] = relation
                return [Block([node], [], {}, self._fold)]
            case Filter(LeftJoin() as join, predicate) if lost := self._lost(join, predicate):
                return lost
            case Filter(child, predicate):
                every = self.of(child)
                for block in every:
                    block.restrict(predicate)
                return _filled(every)
            case Project(child, items):
                every = self.of(child)
                for block in every:
                    block.compute(items)
                return every
            case Join(left, right, on):
                ours, theirs = self.of(left), self.of(right)
                if self._few and len(ours) > 1 and len(theirs) > 1:
                    theirs = self.of(bag(right, self.ids))
                return _filled([_joined(a, b, on) for a in ours for b in theirs])
            case LeftJoin(left, right, on):
                return self._defaulted(node) or self._outer(node)
            case SemiJoin(left, right, on):
                return self._matched(left, right, on)
            case AntiJoin(left, right, on):
                return self._lonely(left, right, on) if self._few else self._unmatched(left, right, on)
            case Union(children, columns):
                every = []
                for child in children:
                    mine = self.of(child)
                    for block in mine:
                        block.compute(zip(columns, child.output, strict=True))
                    every += mine
                return every
            case Window():
                scan = self._windowed(node)
                return [self._of_nest(node, scan)]
            case Sort(child):
                return self.of(child)  # an ordering inside a view or derived table orders nothing
            case Aggregate() if split := split_aggregates(node, self.ids):  # one that a groupjoin has made
                return self.of(split)
            case Aggregate() | Repeat():
                return [self._of_nest(node, self._nested(node))]
        raise AssertionError(f"the binder let {type(node).__name__} below a join")

    def _of_nest(self, node: Node, scan: Scan) -> Block:
        """What scans the nest that an operator makes."""
        titled = zip(node.output, scan.columns, strict=True)  # NB: columns go by id, their names differ
        return Block([scan], [], {column.id: field for column, field in titled}, self._fold)

    def _lost(self, join: LeftJoin, predicate: Expr) -> list[Block]:
        """left − left ⋈ matches, where only what has found nothing is asked for; nothing if that gains nothing.

        As one product it is told of all values of `left` that they have no match, which is dear where few have one: as
        far as can be seen, where something is asked of the matches. One difference only: n of them are 2ⁿ products.
        """
        items = join.right.items if isinstance(join.right, Project) else ()
        found = {c.id for c, expr in items if not expr.nullable}
        rest = [c for c in conjuncts(predicate) if not _is_null_of(c, found)]
        if len(rest) == len(conjuncts(predicate)) or not _is_restricted(join.right):
            return []
        if not _is_one_product(join.left):
            return []
        every = self._unmatched(join.left, join.right, join.on)
        for block in every:
            block.compute((c, Literal(None, c.type)) for c in join.right.output)
            block.restrict(conjunction(rest))
        return _filled(every)

    def _defaulted(self, join: LeftJoin) -> list[Block]:
        """left ⋈ groups with defaults; nothing if that is not what `right` is"""
        found = defaulted(join, self.ids)
        if found is None:
            return []
        plan, nothing = found
        every = self.of(plan)
        for block in every:
            block.nothing |= nothing
        return every

    def _outer(self, join: LeftJoin) -> list[Block]:
        """left ⋈ right, and what of left is in no match, with NULLs beside it."""
        left, right, on = join.left, join.right, join.on
        if self._few:
            return self.of(optional(join, self.ids))
        found, lost = self.of(Join(left, right, on)), self._lonely(left, right, on)
        for block in found:
            block.compute((c, c) for c in right.output)  # not NULL here, if they are not in `right`
        for block in lost:
            block.compute((c, Literal(None, c.type)) for c in right.output)
        return _filled(found + lost)

    def _lonely(self, left: Node, right: Node, on: Expr) -> list[Block]:
        """What of left is in no match: that of whose values there is none."""
        matches, same = self._matches(left, right, on)
        marker = self._column(TRUE)
        marked = Project(matches, (*((c, c) for c in matches.output), (marker, TRUE)))
        lost = self._defaulted(LeftJoin(left, marked, same))
        for block in lost:
            block.restrict(is_null(marker))
        return lost or self._unmatched(left, right, on)

    def _matched(self, left: Node, right: Node, on: Expr) -> list[Block]:
        """left ⋈ Exists(matches)"""
        matches, same = self._matches(left, right, on)
        return _filled([_joined(a, b, same) for a in self.of(left) for b in self.of(matches)])

    def _unmatched(self, left: Node, right: Node, on: Expr) -> list[Block]:
        """left − left ⋈ Exists(matches)"""
        gone = self._matched(left, right, on)
        for block in gone:
            block.sign = -block.sign
        return _filled(self.of(left) + gone)

    def _matches(self, left: Node, right: Node, on: Expr) -> tuple[Node, Expr]:
        """What says once, of the values in `left` that `on` reads, that `right` has a match; and how it is joined.

        Where `on` only equates the two sides, that is in `right` alone; else the pairs are looked at.
        """
        ours, theirs = frozenset(c.id for c in left.output), frozenset(c.id for c in right.output)
        equal: list[tuple[str, Expr, Expr]] = []
        own: list[Expr] = []
        asked: list[Expr] = []  # of `left` alone
        for conjunct in conjuncts(on):
            match conjunct:
                case Call("=" | "<=>" as name, (a, b)) if _reads(a, ours) and _reads(b, theirs):
                    equal.append((name, a, b))
                case Call("=" | "<=>" as name, (a, b)) if _reads(a, theirs) and _reads(b, ours):
                    equal.append((name, b, a))
                case _ if {c.id for c in columns(conjunct)} <= theirs:
                    own.append(conjunct)
                case _ if {c.id for c in columns(conjunct)} <= ours:
                    asked.append(conjunct)
                case _:
                    read = sorted((c for c in columns(on) if c.id in ours), key=lambda c: c.id)
                    keys: list[tuple[Column, Expr]] = [(self._column(c), c) for c in read]
                    same = conjunction(Call("<=>", (c, key), BOOLEAN, False) for key, c in keys)
                    return Aggregate(Join(left, right, on), tuple(keys), ()), same
        if equal and not own and _unique(right) == {b.id if isinstance(b, Column) else None for _, _, b in equal}:
            return right, on
        if not equal:
            equal = [("=", TRUE, TRUE)]
        keys = [(self._column(b), b) for _, _, b in equal]
        pairs = [Call(name, (a, k), BOOLEAN, name == "=") for (name, a, _), (k, _) in zip(equal, keys, strict=True)]
        same = conjunction((*pairs, *asked))
        return Aggregate(Filter(right, conjunction(own)) if own else right, tuple(keys), ()), same

    def _column(self, of: Expr) -> Column:
        return Column(next(self.ids), of.name if isinstance(of, Column) else "x", of.type, of.nullable)

    def _nested(self, node: Aggregate | Repeat) -> Scan:
        """The scan of the relation that an Aggregate makes; equal ones make one."""
        spelled = self._spelling.number(node)
        output, number = node.output, node.number if isinstance(node, Repeat) else None
        node, times = (node.child, node.times) if isinstance(node, Repeat) else (node, None)
        nest = self._known.get(spelled)
        if nest is None:
            over: Column | None = None
            if any(agg.extreme for _, agg in node.aggs):
                arg, beside = node.aggs[0][1].arg, {e: self._column(e) for e in node.aggs[0][1].args}
                keys = (*node.keys, *((column, e) for e, column in beside.items()))
                view, printed, _ = _grouped("", replace(node, keys=keys, aggs=()), self)
                found = {e: v for e, column in beside.items() if isinstance(v := printed.pop(column.id), Column)}
                over = found[arg] if arg else None
                measures = tuple(_of_values(column, agg, found) for column, agg in node.aggs)
            else:
                view, printed, measures = _grouped("", node, self)
            taken = {*self.relations, *(n.relation.name for n in self.nests)}
            name = nest_name(taken)
            titles = _distinct_names([_word(column.name) for column in output])
            fields = tuple(Field(t, c.type, c.nullable) for t, c in zip(titles, output, strict=True))
            stream = any(atom.relation.stream for atom in view.atoms)
            items = tuple((t, printed.get(c.id, c)) for t, c in zip(titles, output, strict=True))
            times = times and substitute(times, printed)
            finish = Finish(
                measures, None, items, (), None, 0, repeat=False, single=not node.keys, over=over, times=times,
                number=number,
            )  # fmt: skip
            last = titles[-1:] if number is not None else []
            relation = Relation(name, fields, stream, "view", primary_key=(*titles[: len(node.keys)], *last))
            nest = Nest(relation, replace(view, name=f"G_{name.upper()}"), finish)
            self.nests.append(nest)
            self._known[spelled] = nest
        columns = (replace(c, name=f.name) for c, f in zip(output, nest.relation.fields, strict=True))
        return Scan(nest.relation, nest.relation.name, tuple(columns))

    def _windowed(self, node: Window) -> Scan:
        """The scan of the relation of the rows that a window shows; equal ones are one."""
        spelled = self._spelling.number(node)
        nest = self._known.get(spelled)
        if nest is None:
            keys = tuple((self._column(c), c) for c in node.output)
            view, printed, _ = _grouped("", Aggregate(node.child, keys, ()), self)
            name = nest_name({*self.relations, *(n.relation.name for n in self.nests)})
            titles = _distinct_names([c.name for c in node.output])
            fields = tuple(Field(t, c.type, c.nullable) for t, c in zip(titles, node.output, strict=True))
            items = tuple((t, printed[c.id]) for t, (c, _) in zip(titles, keys, strict=True))
            finish = Finish((), None, items, (), None, 0, repeat=True, single=False)
            time = next(t for t, c in zip(titles, node.output, strict=True) if c == node.time)
            relation = Relation(name, fields, True, "view")
            view = replace(view, name=f"W_{name.upper()}")
            nest = Nest(relation, view, finish, window=replace(node.spec, field=time))
            self.nests.append(nest)
            self._known[spelled] = nest
        return Scan(nest.relation, nest.relation.name, tuple(replace(c, id=next(self.ids)) for c in node.output))


def _is_null_of(conjunct: Expr, ids: set[int]) -> bool:
    """Is it `c IS NULL` of one of those columns?"""
    match conjunct:
        case Call("is_null", (Column(id),)):
            return id in ids
    return False


def _is_restricted(node: Node) -> bool:
    """Is more asked of its rows than that something is not NULL?"""
    match node:
        case Filter(child, predicate):
            more = any(c != not_null(v) for c in conjuncts(predicate) for v in columns(c))
            return more or _is_restricted(child)
        case Project() | Aggregate() | Join():
            return any(map(_is_restricted, node.inputs))
    return False


def _is_one_product(node: Node) -> bool:
    """Scans, and aggregates of anything, joined and filtered."""
    match node:
        case Scan() | Aggregate():
            return True
        case Filter() | Project() | Join():
            return all(map(_is_one_product, node.inputs))
    return False


def _of_values(column: Column, agg: Agg, keys: Mapping[Expr, Column]) -> Measure:
    """An aggregate of a group's values, which are listed in the order of `keys`."""
    ways = tuple((keys[expr], down, nulls) for expr, down, nulls in agg.order)
    return Measure(agg.function, column, (), (), share=agg.share, separator=agg.separator, order=ways)


def _folding(evaluate: Evaluate | None) -> Callable[[Expr], Expr]:
    """What NULL and constants make of expressions."""
    if evaluate is None:
        return Rewriter(fold_null)
    computed = cache(fold_constant(evaluate))
    return Rewriter(lambda expr: fold_null(expr if (value := computed(expr)) is None else value) or value)


def _joined(a: Block, b: Block, on: Expr | None) -> Block:
    computed, nothing = a.computed | b.computed, a.nothing | b.nothing
    block = Block(a.scans + b.scans, a.conjuncts + b.conjuncts, computed, a.fold, a.sign * b.sign, nothing)
    if on is not None:
        block.restrict(on)
    return block


def _asked(conjunct: Expr) -> Expr:
    """x = x → NOT x IS NULL, where no more is asked than whether it is TRUE"""
    match conjunct:
        case Call("=", (a, b)) if a == b:
            return not_null(a)
    return conjunct


def _filled(blocks: list[Block]) -> list[Block]:
    """The blocks that may have rows, or any, as a view has at least one."""
    return [block for block in blocks if not block.empty] or blocks[:1]


def _unique(node: Node) -> set[int | None]:
    """The columns of which a plan has each combination once; empty if none are known."""
    match node:
        case Aggregate(_, keys):
            return {column.id for column, _ in keys}
        case Project(child, items):
            names = {expr.id: column.id for column, expr in items if isinstance(expr, Column)}
            return {names.get(id) for id in _unique(child) if id is not None}
        case Filter(child):
            return _unique(child)
    return set()


def _reads(expr: Expr, ids: frozenset[int]) -> bool:
    """Does it read columns, and only those?"""
    return bool(columns(expr)) and {c.id for c in columns(expr)} <= ids


def _word(name: str) -> str:
    """SUM(l_quantity)  →  sum_l_quantity"""
    return re.sub(r"\W+", "_", name).strip("_").lower() or "x"


def _distinct_names(names: list[str]) -> list[str]:
    """a, b, A  →  a, b, A_2"""
    taken: set[str] = set()
    out = []
    for name in names:
        free = next(n for n in chain((name,), (f"{name}_{i}" for i in count(2))) if n.lower() not in taken)
        taken.add(free.lower())
        out.append(free)
    return out


def _chain(node: Node) -> list[Node]:
    """The projections, filters and sorts on top of a plan, top first."""
    above: list[Node] = []
    while isinstance(node, Project | Filter | Sort):
        above.append(node)
        node = node.child
    return above


def _finish(post: list[Node], names: tuple[str, ...], printed: dict[int, Expr], node: Node) -> Finished:
    """HAVING, the SELECT list and the ORDER BY in terms of the view's keys and of measures."""
    mapping: dict[int, Expr] = dict(printed)
    having: list[Expr] = []
    order: Order = ()
    for operator in reversed(post):
        match operator:
            case Filter(_, predicate):
                having.append(substitute(predicate, mapping))
            case Project(_, items):
                mapping |= {column.id: substitute(expr, mapping) for column, expr in items}
            case Sort(_, keys):
                order = tuple((substitute(expr, mapping), down, nulls) for expr, down, nulls in keys)
    selected = tuple((name, mapping.get(c.id, c)) for name, c in zip(names, node.output, strict=True))
    return conjunction(having) if having else None, selected, order


class _Lanes:
    """The lanes of a view, each distinct product once; lane 0 counts rows. A lane says what each block contributes."""

    def __init__(self, blocks: list["_Atoms"]) -> None:
        self._blocks = blocks
        self.all: list[tuple[Lane | None, ...]] = [((),) * len(blocks)]
        self._numbers = {self.all[0]: 0}

    def measure(self, column: Column, agg: Agg, args: list[Expr | None]) -> Measure:
        """An aggregate whose argument is `args` in the blocks."""
        if agg.arg is None:
            return Measure(agg.function, column, ((1, 0),), ((1, 0),))
        given = [(arg, block.owner) for arg, block in zip(args, self._blocks, strict=True) if arg is not None]
        seen = self._number([present(arg, owner) for arg, owner in given])
        value = seen if agg.function == "count" else self._number([linear(arg, owner) for arg, owner in given])
        return Measure(agg.function, column, value, seen, agg.arg.type.scale)

    def _number(self, polynomials: list[Polynomial]) -> tuple[tuple[int, int], ...]:
        """A polynomial for each block as one over lane numbers; terms of one coefficient share lanes, in order."""
        terms: dict[int, int] = {}
        for coefficient in dict.fromkeys(c for polynomial in polynomials for c, _ in polynomial):
            mine = [[lane for c, lane in polynomial if c == coefficient] for polynomial in polynomials]
            for lanes in zip_longest(*mine):
                lane = tuple(
                    None if own is None else tuple(block.rename(factor) for factor in own)
                    for own, block in zip(lanes, self._blocks, strict=True)
                )
                number = self._numbers.setdefault(lane, len(self.all))
                if number == len(self.all):
                    self.all.append(lane)
                terms[number] = terms.get(number, 0) + coefficient
        return tuple((coefficient, number) for number, coefficient in terms.items() if coefficient)


class _Atoms:
    """The atoms of a block with their shared variables: equalities between atoms are folded into names.

    But where what is asked of a column, or `made` of it, may fail, it is not asked of what the column is equal to:
    R(a), b := a, S(b) and not R(b), S(b), for some values of S may be in no row of R.
    """

    def __init__(self, block: Block, made: Iterable[Expr], ids: Iterator[int]) -> None:
        self.scans, self._sign = block.scans, block.sign
        self._owner = {c.id: i for i, scan in enumerate(block.scans) for c in scan.columns}
        self._fresh = ids
        self._parent: dict[Expr, Expr] = {}
        self._strict: set[Expr] = set()  # terms that are equal to something, hence not NULL
        self._computed: list[Assign] = []
        self._assigns: dict[Expr, Column] = {}
        others = [c for c in block.conjuncts if not self._equate(c)]
        asked = (*others, *made)
        self._own, self._typed = _reading(asked, _may_fail), _reading(asked, _is_of_type)
        self._variables: dict[int, Expr] = {}
        self._filters = self._name_classes()
        self._filters += [self._compared(c) for c in others]

    def owner(self, column: Column) -> int:
        return self._owner[column.id]

    def rename(self, expr: Expr) -> Expr:
        """Columns replaced by the variables of their classes."""
        return substitute(expr, self._variables)

    def variable(self, column: Column, expr: Expr) -> Column:
        """The variable of a GROUP BY key, assigned if it is computed."""
        expr = self.rename(expr)
        if isinstance(expr, Column):
            return expr
        if expr not in self._assigns:
            self._assigns[expr] = Column(next(self._fresh), column.name, expr.type, expr.nullable)
        return self._assigns[expr]

    def term(self, mine: list[Column], shared: list[Column], lanes: tuple[Lane | None, ...]) -> Monomial:
        """What the block contributes to a view whose key variables are `shared`, where ours are `mine`."""
        names: dict[int, Expr] = {}
        copies = []
        for own, key in zip(mine, shared, strict=True):
            if names.setdefault(own.id, key) != key:
                copies.append(Assign(key, names[own.id]))
        body = tuple(renamed(factor, names) for factor in self._body())
        taken = () if self._sign > 0 else (MINUS,)
        lanes = tuple(
            None if lane is None else (*(substitute(factor, names) for factor in lane), *taken) for lane in lanes
        )
        return Monomial(prune((*body, *copies), shared, lanes), lanes)

    def _compared(self, conjunct: Expr) -> Expr:
        """x < f(y, z), of two atoms   →   x < v, where v := f(y, z) can be looked up"""
        match conjunct:
            case Call("<" | "<=" | ">" | ">=", (a, b)) if len(self._owners(a)) == len(self._owners(b)) == 1:
                if self._owners(a) != self._owners(b):
                    return replace(conjunct, args=(self._side(a), self._side(b)))
        return self.rename(conjunct)

    def _side(self, expr: Expr) -> Expr:
        """A side of a comparison, as a variable if the order of no column is its order. (A nest is looked through.)"""
        first, *more = columns(expr)
        ordered = not more and slope(expr, first) in (RISING, FALLING)
        if ordered or not expr.type.is_held_in_order or self.scans[self.owner(first)].relation.format == "view":
            return self.rename(expr)
        return self.variable(column_of(expr, 0), expr)

    def _body(self) -> tuple[Factor, ...]:
        """Relations, then assignments, then predicates."""
        rels = [
            Rel(
                scan.relation,
                tuple((f.name, self._renamed(c)) for f, c in zip(scan.relation.fields, scan.columns, strict=True)),
            )
            for scan in self.scans
        ]
        assigns = [Assign(variable, expr) for expr, variable in self._assigns.items()]
        return (*rels, *self._computed, *assigns, *map(Cmp, self._filters))

    def _renamed(self, column: Column) -> Column:
        variable = self._variables.get(column.id, column)
        assert isinstance(variable, Column)
        return variable

    def _owners(self, expr: Expr) -> set[int]:
        return {self._owner[c.id] for c in columns(expr)}

    def _equate(self, conjunct: Expr) -> bool:
        """Take `a = b` over two different atoms into the classes of equal terms."""
        match conjunct:
            case Call("=" | "<=>" as name, (left, right)) if len(self._owners(left)) == len(self._owners(right)) == 1:
                if self._owners(left) != self._owners(right):
                    self._strict |= {uncast(left), uncast(right)} if name == "=" else set()
                    self._parent[self._root(uncast(left))] = self._root(uncast(right))
                    return True
        return False

    def _root(self, term: Expr) -> Expr:
        while (parent := self._parent.setdefault(term, term)) != term:
            term = parent
        return term

    def _name_classes(self) -> list[Expr]:
        """One variable for each class of equal terms. Returns what must hold besides: members are not NULL (a NULL
        equals nothing, but for <=>), and two members in one atom are equal."""
        classes: dict[Expr, list[Expr]] = {}
        for term in self._parent:
            classes.setdefault(self._root(term), []).append(term)
        filters: list[Expr] = []
        computed: list[tuple[Column, Expr]] = []
        for members in classes.values():
            members.sort(key=lambda m: not isinstance(m, Column))
            name = members[0].name if isinstance(members[0], Column) else "x"
            type = reduce(_wider, (m.type for m in members))
            shared = Column(next(self._fresh), name, type, any(m.nullable for m in members))
            if shared.nullable and self._strict & set(members):
                filters.append(not_null(shared))
            taken: set[int] = set()
            for member in members:
                (owner,) = self._owners(member)
                if owner in taken:
                    filters.append(Call("<=>", (shared, member), BOOLEAN, False))
                elif isinstance(member, Column) and not self._is_own(member, type):
                    self._variables[member.id] = shared
                else:  # NB: a column as such would be a second name for what is held
                    computed.append((shared, Cast(member, type) if isinstance(member, Column) else member))
                taken.add(owner)
        self._computed = []
        for shared, member in computed:
            expr = self.rename(member)
            if self._is_known_beside(shared, expr):
                filters.append(Call("<=>", (shared, member), BOOLEAN, False))
            else:
                self._computed.append(Assign(shared, expr))
        return [self.rename(f) for f in filters]

    def _is_own(self, column: Column, type: Type) -> bool:
        """Is a column not to be called as what it is equal to, which is of a type?"""
        return column in self._own or (column.type != type and column in self._typed)

    def _is_known_beside(self, variable: Column, expr: Expr) -> bool:
        """Is a variable known in an atom that has all which `expr` reads: its column, or computed of others there?"""
        read = columns(expr)
        known = [a.value for a in self._computed if a.variable == variable]
        every = [frozenset(map(self._renamed, scan.columns)) for scan in self.scans]
        return any(read <= atom and (variable in atom or any(columns(e) <= atom for e in known)) for atom in every)


def _reading(exprs: Iterable[Expr], kind: Callable[[Expr], bool]) -> frozenset[Column]:
    """The columns that are read by what has a part of a kind."""
    return frozenset().union(*(columns(expr) for expr in exprs if any(map(kind, walk(expr)))))


def _may_fail(expr: Expr) -> bool:
    """Has it no value for some values of the type that it is given? (A sum has none for very few.)"""
    return isinstance(expr, Cast) and expr.type not in (common(expr.arg.type, expr.type), VARCHAR)


def _is_of_type(expr: Expr) -> bool:
    """May it have no value for what is in no column of the type that it is given?"""
    return isinstance(expr, Cast) or (isinstance(expr, Call) and expr.name in ("+", "-", "*", "div", "negate"))


def _wider(a: Type, b: Type) -> Type:
    """The type that holds the values of both, which are held alike."""
    wider = common(a, b)
    assert wider is not None, (a, b)
    return wider
