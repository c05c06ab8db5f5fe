"""Groups restricted to those that a join with a filtered relation reads.

    L ⋈_{l.k = p.k} σ_f(P) ⋈_{p.k = k} (Aggregate by k: AVG(v) of R)
 →  L ⋈_{l.k = p.k} σ_f(P) ⋈_{p.k = k} (Aggregate by k: AVG(v) of (R ⋈_{k = p'.k} σ_f(P')))

Where k is the PRIMARY KEY of P, a row of R has one row of P' at most, so each group that is read has the rows that it
had, and no other group is maintained: a row of R that is in none costs a lookup (TPC-H Q2, Q4, Q17). That a filter
leaves few rows is a guess.

Source: magic sets, Seshadri et al., *Cost-Based Optimization for Magic*, SIGMOD 1996.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Call, Column, Expr, columns, conjunction, conjuncts, not_null, substitute
from squallpy.logical.nodes import Aggregate, ConditionalJoin, Filter, Join, Node, Project, Scan, nodes, with_inputs
from squallpy.logical.plan_interning import PlanInterner

Pair = tuple[int, int]  # ids of columns that are equal


def restrict_groups(plan: Node, columns: ColumnAllocator) -> Node:
    """Join the rows of groups with the filtered relation by whose PRIMARY KEY these are read."""
    return _Restriction(plan, columns.ids).restricted(plan)


@dataclass(frozen=True, slots=True)
class _Facts:
    """Properties of the rows of a join: equal columns, and the filtered relations that it reads."""

    equal: tuple[Pair, ...] = ()
    filtered: tuple[Filter, ...] = ()

    @staticmethod
    def of(node: Node) -> "_Facts":
        """Collect what is true of every row of a plan."""
        match node:
            case Filter(Scan(), predicate) if _is_selective(predicate):
                return _Facts((), (node,))
            case Filter(child, predicate):
                return _Facts(_equalities(predicate)).also(_Facts.of(child))
            case Project(child, items):
                renamed = tuple((column.id, expr.id) for column, expr in items if isinstance(expr, Column))
                return _Facts(renamed).also(_Facts.of(child))
            case Join(left, right, on):
                return _Facts(_equalities(on)).also(_Facts.of(left)).also(_Facts.of(right))
            case ConditionalJoin(left):
                return _Facts.of(left)
        return _Facts()

    def also(self, other: "_Facts") -> "_Facts":
        """Add the facts of another plan whose rows are joined."""
        return _Facts(self.equal + other.equal, self.filtered + other.filtered)

    def equal_to(self, id: int) -> set[int]:
        """Find the columns that equal one."""
        found, before = {id}, 0
        while len(found) > before:
            before = len(found)
            for a, b in self.equal:
                if a in found or b in found:
                    found |= {a, b}
        return found


class _Restriction:
    """The pass over one plan."""

    def __init__(self, plan: Node, ids: Iterator[int]) -> None:
        self._ids, self._known = ids, dict[int, tuple[Node, Node]]()
        self._readers = Counter(id(child) for node in nodes(plan) for child in node.inputs)
        self._plan, self._interned = plan, PlanInterner()

    def restricted(self, node: Node) -> Node:
        """Rewrite a plan whose readers tell nothing of the rows that they need."""
        if id(node) not in self._known:
            self._known[id(node)] = node, self._within(node, _Facts.of(node))
        return self._known[id(node)][1]

    def _within(self, node: Node, facts: _Facts) -> Node:
        """Rewrite a plan of whose rows those are needed of which `facts` are true."""

        def below(child: Node) -> Node:
            return self._within(child, facts) if self._readers[id(child)] == 1 else self.restricted(child)

        match node:
            case Join(left, right):
                return with_inputs(node, (below(left), below(right)))
            case ConditionalJoin(left, right):  # NB: a groupjoin has groups of its left input's rows alone
                return with_inputs(node, (below(left), self.restricted(right)))
            case Filter(child) | Project(child):
                return with_inputs(node, (below(child),))
            case Aggregate(child):
                return with_inputs(node, (self.restricted(self._join_filtered(node, facts) or child),))
        return with_inputs(node, tuple(map(self.restricted, node.inputs)))

    def _join_filtered(self, groups: Aggregate, facts: _Facts) -> Node | None:
        """Join the rows of groups with a filtered relation by whose PRIMARY KEY they are read, if there is one."""
        own = {c.relation.name for c in nodes(groups.child) if isinstance(c, Scan)}
        for filtered in facts.filtered if groups.keys and self._is_alone(groups) else ():
            assert isinstance(filtered.child, Scan)
            scan, keys = filtered.child, _primary_key(filtered.child)
            if not keys or scan.relation.name in own:
                continue
            found = [self._key(groups, facts.equal_to(key.id)) for key in keys]
            if not all(found):
                continue
            names = {c.id: replace(c, id=next(self._ids)) for c in scan.columns}
            copied: dict[int, Expr] = {**names}
            copy = Filter(replace(scan, columns=tuple(names.values())), substitute(filtered.predicate, copied))
            same = (call("=", key, names[c.id]) for key, c in zip(found, keys, strict=True) if key)
            return Join(groups.child, copy, conjunction(same))
        return None

    def _is_alone(self, groups: Aggregate) -> bool:
        """True if no other groups are made of the same rows, whose view they would share."""
        number = self._interned.number(groups.child)
        others = (node for node in nodes(self._plan) if isinstance(node, Aggregate))
        return sum(self._interned.number(other.child) == number for other in others) == 1

    @staticmethod
    def _key(groups: Aggregate, equal: set[int]) -> Expr | None:
        """Find the key of groups that is one of some columns."""
        return next((expr for column, expr in groups.keys if column.id in equal), None)


def _primary_key(scan: Scan) -> Sequence[Column]:
    names = scan.relation.primary_key
    return [c for field, c in zip(scan.relation.fields, scan.columns, strict=True) if field.name in names]


def _equalities(predicate: Expr | None) -> tuple[Pair, ...]:
    """List the columns that a predicate equates, none of them NULL."""
    found = list[Pair]()
    for conjunct in conjuncts(predicate) if predicate is not None else ():
        match conjunct:
            case Call("=", (Column(a), Column(b))):
                found.append((a, b))
    return tuple(found)


def _is_selective(predicate: Expr) -> bool:
    """True if a predicate has more than NOT NULL tests."""
    return any(c != not_null(v) for c in conjuncts(predicate) for v in columns(c))
