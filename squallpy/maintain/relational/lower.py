"""Logical plan → ring calculus: the query as one view, and how its rows are printed.

    Project(Aggregate(Filter(Join(Scan, Scan))))   →   Q(keys) = Sum_[keys](R ⋈ S ⋈ predicates ⋈ ⟨1, …⟩)  +  Finish

Equalities between two atoms become shared variables (computed ones where a side is an expression); lane 0 is the
count of rows, which says whether a group exists.
"""

from dataclasses import dataclass, replace
from functools import reduce
from itertools import count

from squallpy.base.types import BOOLEAN, Type, common
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Call, Cast, Column, Expr, columns, conjunction, conjuncts, substitute
from squallpy.logical.nodes import Agg, Aggregate, Filter, Join, Limit, Node, Project, Query, Scan, Sort
from squallpy.maintain.program import RESULT, Finish, Measure, View
from squallpy.maintain.relational.calculus import Assign, Cmp, Factor, Lane, Rel
from squallpy.maintain.relational.linear import Polynomial, linear, not_null, present
from squallpy.maintain.relational.units import prune


@dataclass(slots=True)
class Block:
    """A select-project-join block: its scans, its conjuncts and the columns that projections computed."""

    scans: list[Scan]
    conjuncts: list[Expr]
    computed: dict[int, Expr]

    def inline(self, expr: Expr) -> Expr:
        return substitute(expr, self.computed) if self.computed else expr


@dataclass(frozen=True, slots=True)
class Lowered:
    view: View
    finish: Finish
    relations: tuple[Relation, ...]


Order = tuple[tuple[Expr, bool, bool], ...]
Finished = tuple[Expr | None, tuple[tuple[str, Expr], ...], Order]  # HAVING, SELECT list, ORDER BY


def lower(query: Query) -> Lowered:
    """The query as a view of the ring calculus, not yet materialised, with its `Finish`."""
    node = query.plan
    limit, offset = None, 0
    if isinstance(node, Limit):
        limit, offset, node = node.count, node.offset, node.child
    above = _chain(node)
    bottom = above[-1].inputs[0] if above else node
    aggregate = bottom if isinstance(bottom, Aggregate) else None
    ordering: tuple[tuple[Column, Expr, bool, bool], ...] = ()
    aggs: list[tuple[Column, Agg]] = []
    if aggregate:
        block = _block(aggregate.child)
        keys = [(column, block.inline(expr)) for column, expr in aggregate.keys]
        aggs = [(column, replace(agg, arg=agg.arg and block.inline(agg.arg))) for column, agg in aggregate.aggs]
    else:  # every printed and every ordering expression is a key: a bag of rows with multiplicities
        block, fresh = _block(node), count(900_000_000)
        sorts = next((n.keys for n in above if isinstance(n, Sort)), ())
        ordering = tuple((Column(next(fresh), str(e), e.type, e.nullable), e, down, nulls) for e, down, nulls in sorts)
        keys = [(c, block.inline(c)) for c in node.output] + [(c, block.inline(e)) for c, e, _, _ in ordering]
        above = []
    atoms = _Atoms(block)
    lanes = _Lanes(atoms)

    key_variables = [atoms.variable(column, expr) for column, expr in keys]
    measures = [lanes.measure(column, agg) for column, agg in aggs]
    distinct = tuple(dict.fromkeys(key_variables))
    view = View(RESULT, distinct, prune(atoms.body(), distinct, lanes.all), tuple(lanes.all))

    printed: dict[int, Expr] = {column.id: v for (column, _), v in zip(keys, key_variables, strict=True)}
    having, items, order = _finish(above, query, printed, node)
    if aggregate is None:
        order = tuple((printed[c.id], down, nulls) for c, _, down, nulls in ordering)
    finish = Finish(
        tuple(measures), having, items, order, limit, offset,
        repeat=aggregate is None, single=aggregate is not None and not aggregate.keys,
    )  # fmt: skip
    relations = {scan.relation.name: scan.relation for scan in block.scans}
    return Lowered(view, finish, tuple(relations.values()))


def _chain(node: Node) -> list[Node]:
    """The projections, filters and sorts on top of a plan, top first."""
    above: list[Node] = []
    while isinstance(node, Project | Filter | Sort):
        above.append(node)
        node = node.child
    return above


def _finish(post: list[Node], query: Query, printed: dict[int, Expr], node: Node) -> Finished:
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
    selected = tuple((name, mapping.get(c.id, c)) for name, c in zip(query.names, node.output, strict=True))
    return conjunction(having) if having else None, selected, order


def _block(node: Node) -> Block:
    match node:
        case Scan():
            return Block([node], [], {})
        case Filter(child, predicate):
            block = _block(child)
            block.conjuncts += [block.inline(c) for c in conjuncts(predicate)]
            return block
        case Project(child, items):
            block = _block(child)
            block.computed |= {column.id: block.inline(expr) for column, expr in items}
            return block
        case Join(left, right, on):
            a, b = _block(left), _block(right)
            block = Block(a.scans + b.scans, a.conjuncts + b.conjuncts, a.computed | b.computed)
            block.conjuncts += [block.inline(c) for c in conjuncts(on)] if on is not None else []
            return block
        case Sort(child):
            return _block(child)  # an ordering inside a view or derived table orders nothing
    raise AssertionError(f"the binder let {type(node).__name__} below a join")


class _Lanes:
    """The lanes of the result, each distinct product once; lane 0 counts rows."""

    def __init__(self, atoms: "_Atoms") -> None:
        self.all: list[Lane] = [()]
        self._atoms = atoms

    def measure(self, column: Column, agg: Agg) -> Measure:
        if agg.arg is None:
            return Measure(agg.function, column, ((1, 0),), ((1, 0),))
        seen = self._number(present(agg.arg, self._atoms.owner))
        value = seen if agg.function == "count" else self._number(linear(agg.arg, self._atoms.owner))
        return Measure(agg.function, column, value, seen, agg.arg.type.scale)

    def _number(self, polynomial: Polynomial) -> tuple[tuple[int, int], ...]:
        """A polynomial over lane numbers, like terms added up."""
        terms: dict[int, int] = {}
        for coefficient, lane in polynomial:
            lane = tuple(self._atoms.rename(factor) for factor in lane)
            if lane not in self.all:
                self.all.append(lane)
            number = self.all.index(lane)
            terms[number] = terms.get(number, 0) + coefficient
        return tuple((coefficient, number) for number, coefficient in terms.items() if coefficient)


class _Atoms:
    """The atoms of a block with their shared variables: equalities between atoms are folded into names."""

    def __init__(self, block: Block) -> None:
        self.scans = block.scans
        self._owner = {c.id: i for i, scan in enumerate(block.scans) for c in scan.columns}
        self._fresh = count(max(self._owner, default=0) + 500_000)
        self._parent: dict[Expr, Expr] = {}
        self._computed: list[Assign] = []
        self._assigns: dict[Expr, Column] = {}
        others = [c for c in block.conjuncts if not self._equate(c)]
        self._variables: dict[int, Expr] = {}
        self._filters = self._name_classes()
        self._filters += [self.rename(c) for c in others]

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

    def body(self) -> tuple[Factor, ...]:
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
            case Call("=", (left, right)) if len(self._owners(left)) == len(self._owners(right)) == 1:
                if self._owners(left) != self._owners(right):
                    self._parent[self._root(_plain(left))] = self._root(_plain(right))
                    return True
        return False

    def _root(self, term: Expr) -> Expr:
        while (parent := self._parent.setdefault(term, term)) != term:
            term = parent
        return term

    def _name_classes(self) -> list[Expr]:
        """One variable for each class of equal terms. Returns what must hold besides: members are not NULL (a NULL
        equals nothing), and two members in one atom are equal."""
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
            if shared.nullable:
                filters.append(not_null(shared))
            taken: set[int] = set()
            for member in members:
                (owner,) = self._owners(member)
                if owner in taken:
                    filters.append(Call("=", (shared, member), BOOLEAN, True))
                elif isinstance(member, Column):
                    self._variables[member.id] = shared
                else:
                    computed.append((shared, member))
                taken.add(owner)
        self._computed = [Assign(shared, self.rename(member)) for shared, member in computed]
        return [self.rename(f) for f in filters]


def _wider(a: Type, b: Type) -> Type:
    """The type that holds the values of both, which are held alike."""
    wider = common(a, b)
    assert wider is not None, (a, b)
    return wider


def _plain(term: Expr) -> Expr:
    """INT and BIGINT are held alike, so a cast between them makes no new term."""
    match term:
        case Cast(Column() as column, type) if column.type.is_integer and type.is_integer:
            return column
    return term
