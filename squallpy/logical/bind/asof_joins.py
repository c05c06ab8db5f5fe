"""ASOF joins, as the joins with the nearest row that they stand for.

    a ASOF JOIN b ON a.k = b.k AND a.t >= b.t
        →  a JOIN (SELECT DISTINCT ON (b.k, b.t) * FROM b) AS b
           ON a.k = b.k AND b.t = (SELECT MAX(b.t) FROM b WHERE a.k = b.k AND a.t >= b.t)

USING (k, t) says the same. With <= it is the MIN: the next row. Rows that agree on k and t are one match, the first of
them by their other columns.

The last time up to another one is kept by pairs of times that follow each other: a row that comes changes the matches
from its time to the next one's, however many rows there are.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.scope import Scope

_TAKES = "ASOF JOIN takes equalities and one of >=, >, <= and <, which compares both sides"


def rewrite_asof(ctx: Context, join: exp.Join, left: Scope, bind_right: Callable[[], Scope]) -> exp.Join:
    """Replace an ASOF join by one without; what USING merges is left to the caller.

    Args:
        left: The sources before it.
        bind_right: Binds its right side for the names of its columns.
    """
    if join.side not in ("", "LEFT") or join.kind not in ("", "INNER", "OUTER"):
        raise ctx.refuse(join, QUERIES["outer ASOF join"])
    right = Scope() if isinstance(join.this, exp.Lateral) else bind_right()
    if len(right.sources) != 1 or not right.sources[0].alias:
        raise ctx.refuse(join.this, QUERIES["right side of ASOF join"])
    tests = [*_tests(ctx, join, left, right)]
    if asked := next((test for test in tests if test.find(exp.Query)), None):
        raise ctx.refuse(asked, QUERIES["subquery of ASOF join"])
    sides = _Sides.of(ctx, join, left, right)
    own = [test for test in tests if sides.reads_right_alone(test)]
    keys, nearest = list[exp.Expr](), list[tuple[exp.Expr, exp.Expr]]()
    for test in tests:
        theirs = sides.right_operand(test) if isinstance(test, exp.EQ | exp.GTE | exp.GT | exp.LTE | exp.LT) else None
        if isinstance(test, exp.EQ) and theirs:
            keys.append(theirs)
        elif theirs:
            nearest.append((test, theirs))
        elif test not in own and sides.reads_right(test):
            raise ctx.error("SQ2009", _TAKES, test)
    if len(nearest) != 1:
        raise ctx.error("SQ2009", f"{_TAKES}, and there are {len(nearest)}", join.args.get("on") or join.this)
    [(match, time)] = nearest
    is_last = isinstance(match, exp.GTE | exp.GT) == (match.expression is time)
    distinct = exp.Distinct(on=exp.Tuple(expressions=[each.copy() for each in (*keys, time)]))
    rows = _select(join, exp.Star(), own, distinct)
    extreme = exp.Anonymous(this="MAX" if is_last else "MIN", expressions=[time.copy()])
    found = _select(join, extreme, tests)
    conditions = [test for test in tests if test is not match and test not in own]
    on = exp.and_(*conditions, exp.EQ(this=time.copy(), expression=exp.Subquery(this=found)))
    alias = exp.TableAlias(this=exp.to_identifier(right.sources[0].alias, quoted=True))
    rewritten = exp.Join(this=exp.Subquery(this=rows, alias=alias), on=on, side=join.side, kind=join.kind)
    rewritten.parent = join.parent
    return rewritten


@dataclass(frozen=True, slots=True)
class _Sides:
    """The sides of a join whose columns tests read; `right` are those of the right one."""

    ctx: Context
    both: Scope
    right: frozenset[int]

    @staticmethod
    def of(ctx: Context, join: exp.Join, left: Scope, right: Scope) -> "_Sides":
        both = Scope(outer=left.outer)
        for scope in (left, right):
            both.take(ctx, scope, join.this)
        return _Sides(ctx, both, frozenset(c.id for source in right.sources for c in source.columns))

    def reads_right(self, expr: exp.Expr) -> bool:
        return bool(self._columns(expr) & self.right)

    def reads_right_alone(self, expr: exp.Expr) -> bool:
        read = self._columns(expr)
        return bool(read) and read <= self.right

    def right_operand(self, test: exp.Expr) -> exp.Expr | None:
        """Return the operand of a comparison that reads the right side alone, where the other reads nothing of it."""
        operands: tuple[exp.Expr, exp.Expr] = (test.this, test.expression)
        for theirs, ours in (operands[::-1], operands):
            if self.reads_right_alone(theirs) and not self.reads_right(ours) and self._columns(ours):
                return theirs
        return None

    def _columns(self, expr: exp.Expr) -> frozenset[int]:
        """List the columns of both sides, and −1 if there are others, of a query around."""
        return frozenset(self._column(each) for each in expr.find_all(exp.Column))

    def _column(self, node: exp.Column) -> int:
        try:
            return self.both.find_own_column(self.ctx, node).id
        except SquallError as error:
            if self.both.outer is None or error.code == "SQ2002":
                raise
            return -1


def _tests(ctx: Context, join: exp.Join, left: Scope, right: Scope) -> Iterable[exp.Expr]:
    """List the tests of ON, or those of USING, whose last column is the one that is compared."""
    if (condition := join.args.get("on")) is not None:
        yield from _conjuncts(condition)
    names = join.args.get("using") or []
    for name in names:
        reference = exp.Column(this=name.copy())
        reference.parent = join
        owner = left.find_own_column(ctx, reference)
        right.find_own_column(ctx, reference)
        source = next((source for source in left.sources if owner in source.columns and source.alias), None)
        if source is None:
            raise ctx.refuse(name, QUERIES["USING of ASOF join"])
        ours, theirs = (
            exp.Column(this=name.copy(), table=exp.to_identifier(each.alias, quoted=True))
            for each in (source, right.sources[0])
        )
        yield (exp.GTE if name is names[-1] else exp.EQ)(this=ours, expression=theirs)


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    bare = condition.unnest()
    if isinstance(bare, exp.And):
        yield from _conjuncts(bare.this)
        yield from _conjuncts(bare.expression)
    else:
        yield bare


def _select(join: exp.Join, item: exp.Expr, tests: Sequence[exp.Expr], distinct: exp.Expr | None = None) -> exp.Select:
    """Select from the right side of a join."""
    where = exp.Where(this=exp.and_(*tests)) if tests else None
    return exp.Select(expressions=[item], from_=exp.From(this=join.this.copy()), where=where, distinct=distinct)
