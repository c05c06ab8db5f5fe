"""Variables of a block: equal columns of different relations are one variable."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import reduce

from squallpy.base.types import BOOLEAN, VARCHAR, Type, common
from squallpy.logical.expressions import (
    Call,
    Cast,
    Column,
    Expr,
    column_of,
    columns,
    not_null,
    substitute,
    uncast,
    walk,
)
from squallpy.logical.monotonicity import FALLING, RISING, slope
from squallpy.maintain.lowering.block import SpjBlock
from squallpy.program.calculus import MINUS, Assign, Cmp, Factor, Lane, Rel, rename_factor
from squallpy.program.components import prune
from squallpy.program.views import Monomial


class Variables:
    """The atoms of a block with their shared variables: equalities between atoms are folded into names.

    Exception: a column read by an expression that can fail keeps its own variable, and so does one that `made` reads
    so: with R(a), b := a, S(b) instead of R(b), S(b), the expression cannot fail on values of S that are in no row of
    R.
    """

    def __init__(self, block: SpjBlock, key_exprs: Iterable[Expr], ids: Iterator[int]) -> None:
        self.scans, self._sign = block.scans, block.sign
        self._owner = {c.id: i for i, scan in enumerate(block.scans) for c in scan.columns}
        self._ids = ids
        self._parent: dict[Expr, Expr] = {}
        self._strict: set[Expr] = set()  # terms of equalities, hence not NULL
        self._assignments: list[Assign] = []
        self._assigns: dict[Expr, Column] = {}
        others = [c for c in block.conjuncts if not self._equate(c)]
        asked = (*others, *key_exprs)
        self._own, self._typed = _columns_read(asked, _may_fail), _columns_read(asked, _is_of_type)
        self._variables: dict[int, Expr] = {}
        self._filters = self._name_classes()
        self._filters += [self._rename_comparison(c) for c in others]

    def owner(self, column: Column) -> int:
        return self._owner[column.id]

    def rename(self, expr: Expr) -> Expr:
        """Replace columns by the variables of their classes."""
        return substitute(expr, self._variables)

    def variable(self, column: Column, expr: Expr) -> Column:
        """Return the variable of a GROUP BY key, assigned if it is computed."""
        expr = self.rename(expr)
        if isinstance(expr, Column):
            return expr
        if expr not in self._assigns:
            self._assigns[expr] = Column(next(self._ids), column.name, expr.type, expr.nullable)
        return self._assigns[expr]

    def term(self, mine: list[Column], shared: list[Column], lanes: tuple[Lane | None, ...]) -> Monomial:
        """Make the block's term of a view, with key variables `mine` renamed to `shared`."""
        names: dict[int, Expr] = {}
        copies = []
        for own, key in zip(mine, shared, strict=True):
            if names.setdefault(own.id, key) != key:
                copies.append(Assign(key, names[own.id]))
        body = tuple(rename_factor(factor, names) for factor in self._body())
        taken = () if self._sign > 0 else (MINUS,)
        lanes = tuple(
            None if lane is None else (*(substitute(factor, names) for factor in lane), *taken) for lane in lanes
        )
        return Monomial(prune((*body, *copies), shared, lanes), lanes)

    def _rename_comparison(self, conjunct: Expr) -> Expr:
        """Name a computed side of a comparison, so that it can be looked up: x < f(y, z) → x < v, v := f(y, z)"""
        match conjunct:
            case Call("<" | "<=" | ">" | ">=", (a, b)) if len(self._owners(a)) == len(self._owners(b)) == 1:
                if self._owners(a) != self._owners(b):
                    return replace(conjunct, args=(self._name_side(a), self._name_side(b)))
            case Call("=" | "<=>", (a, b)):
                one, several = sorted((a, b), key=lambda side: len(self._owners(side)))
                if len(self._owners(one)) == 1 < len(self._owners(several)) and not self._is_of_view(one):
                    return replace(
                        conjunct, args=tuple(self._name_key(side, _common_type(a.type, b.type)) for side in (a, b))
                    )
        return self.rename(conjunct)

    def _name_side(self, expr: Expr) -> Expr:
        """Name a side of a comparison, by a variable unless it follows the order of a column or a row computes it."""
        first, *more = columns(expr)
        ordered = not more and slope(expr, first) in (RISING, FALLING)
        if ordered or not expr.type.is_held_in_order or self._is_of_view(expr):
            return self.rename(expr)
        return self.variable(column_of(expr, 0), expr)

    def _name_key(self, expr: Expr, type: Type) -> Expr:
        """Give a side of an equality the type of both, and a variable if one atom computes it."""
        expr = expr if expr.type == type else Cast(expr, type)
        return self.variable(column_of(expr, 0), expr) if len(self._owners(expr)) == 1 else self.rename(expr)

    def _is_of_view(self, expr: Expr) -> bool:
        """True if it reads a row that an auxiliary relation computes."""
        return any(self.scans[owner].relation.format == "view" for owner in self._owners(expr))

    def _body(self) -> tuple[Factor, ...]:
        """List relations, then assignments, then predicates."""
        rels = [
            Rel(
                scan.relation,
                tuple((f.name, self._variable_of(c)) for f, c in zip(scan.relation.fields, scan.columns, strict=True)),
            )
            for scan in self.scans
        ]
        assigns = [Assign(variable, expr) for expr, variable in self._assigns.items()]
        return (*rels, *self._assignments, *assigns, *map(Cmp, self._filters))

    def _variable_of(self, column: Column) -> Column:
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
        """Name each class of equal terms by one variable, and return the conditions that remain.

        These are that members are not NULL (a NULL equals nothing, but for <=>), and that two members in one atom are
        equal.
        """
        classes: dict[Expr, list[Expr]] = {}
        for term in self._parent:
            classes.setdefault(self._root(term), []).append(term)
        filters: list[Expr] = []
        computed: list[tuple[Column, Expr]] = []
        for members in classes.values():
            members.sort(key=lambda m: not isinstance(m, Column))
            name = members[0].name if isinstance(members[0], Column) else "x"
            type = reduce(_common_type, (m.type for m in members))
            shared = Column(next(self._ids), name, type, any(m.nullable for m in members))
            if shared.nullable and self._strict & set(members):
                filters.append(not_null(shared))
            taken: set[int] = set()
            for member in members:
                (owner,) = self._owners(member)
                if owner in taken:
                    filters.append(Call("<=>", (shared, member), BOOLEAN, False))
                elif isinstance(member, Column) and not self._keeps_variable(member, type):
                    self._variables[member.id] = shared
                else:  # NB: a bare column would be a second name for the same value
                    computed.append((shared, Cast(member, type) if isinstance(member, Column) else member))
                taken.add(owner)
        self._assignments = []
        for shared, member in computed:
            expr = self.rename(member)
            if self._is_known_beside(shared, expr):
                filters.append(Call("<=>", (shared, member), BOOLEAN, False))
            else:
                self._assignments.append(Assign(shared, expr))
        return [self.rename(f) for f in filters]

    def _keeps_variable(self, column: Column, type: Type) -> bool:
        """True if a column keeps its own variable, though it equals others."""
        return column in self._own or (column.type != type and column in self._typed)

    def _is_known_beside(self, variable: Column, expr: Expr) -> bool:
        """True if some atom that has all columns of `expr` also has the variable, or computes it from others there."""
        read = columns(expr)
        known = [a.value for a in self._assignments if a.variable == variable]
        blocks = [frozenset(map(self._variable_of, scan.columns)) for scan in self.scans]
        return any(read <= atom and (variable in atom or any(columns(e) <= atom for e in known)) for atom in blocks)


def _columns_read(exprs: Iterable[Expr], kind: Callable[[Expr], bool]) -> frozenset[Column]:
    """List the columns of expressions that have a part of a kind."""
    return frozenset().union(*(columns(expr) for expr in exprs if any(map(kind, walk(expr)))))


def _may_fail(expr: Expr) -> bool:
    """True if it has no value for some values of its argument's type. (A sum has none for very few.)"""
    return isinstance(expr, Cast) and expr.type not in (common(expr.arg.type, expr.type), VARCHAR)


def _is_of_type(expr: Expr) -> bool:
    """True if it may fail for values that no column of its argument's type holds."""
    return isinstance(expr, Cast) or (isinstance(expr, Call) and expr.name in ("+", "-", "*", "div", "negate"))


def _common_type(a: Type, b: Type) -> Type:
    """Find the type that holds the values of both, stored alike."""
    wider = common(a, b)
    assert wider is not None, (a, b)
    return wider
