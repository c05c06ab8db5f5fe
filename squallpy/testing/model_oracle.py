"""Table functions over a join, computed from scratch on DuckDB's rows of it: what it is given for `FROM cofactor(…)`.

SELECT * FROM cofactor(TABLE(SELECT x FROM r))    →    SELECT * FROM "model 1" AS cofactor
"model 1" := ('', '', n), ('x', '', Σ x), ('x', 'x', Σ x²) over the rows of SELECT x FROM r whose x is not NULL
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, count
from typing import Any

import numpy as np
from sqlglot import exp

from squallpy.base.records import dataclass
from squallpy.functions.model_functions import ChowLiu, LeastSquares, Model, MutualInformation, Statistics
from squallpy.logical.bind.model_functions import is_factorised
from squallpy.testing.compare_rows import Row

Values = tuple[float, ...]
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class ModelFromScratch:
    """A call of a table function, the table that stands for it in its query, and the query whose rows it reads.

    Args:
        only_numbers: It leaves out what is no number.
    """

    table: str
    function: str
    query: exp.Expr
    keys: tuple[str, ...]
    arguments: tuple[exp.Expr, ...]
    only_numbers: bool

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Names and types of its columns behind the keys."""
        return tuple((name, str(type)) for name, type in FUNCTIONS[self.function][0].columns)

    def rows(self, names: Sequence[str], types: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
        """Compute the model's rows from those of the query, whose columns have these names and DuckDB's types."""
        lowered = [name.lower() for name in names]
        keys = [lowered.index(key.lower()) for key in self.keys]
        others = ("varchar", "boolean", "date", "timestamp") if self.only_numbers else ()
        features = [i for i, type in enumerate(types) if i not in keys and type not in others]
        groups: dict[Row, list[Row]] = {} if keys else {(): []}
        for row in rows:
            if None not in (listed := [row[i] for i in features]):
                groups.setdefault(tuple(row[i] for i in keys), []).append(tuple(listed))
        _, compute = FUNCTIONS[self.function]
        for key, values in groups.items():
            yield from ((*key, *row) for row in compute(self, [names[i] for i in features], values))

    def argument(self, place: int, name: str) -> Any:
        """Return the value of an argument by its place or its name; None if it is not given."""
        named = {arg.this.name.lower(): arg.expression for arg in self.arguments if isinstance(arg, exp.Kwarg)}
        plain = [arg for arg in self.arguments if not isinstance(arg, exp.Kwarg)]
        found = plain[place] if place < len(plain) else named.get(name)
        found = found.this if isinstance(found, exp.Cast) else found
        return found.to_py() if found is not None else None


def replace_models(query: exp.Expr) -> Iterator[ModelFromScratch]:
    """Replace the table functions over joins that a query reads by tables, and yield what these have to hold."""
    for node in list(query.find_all(exp.Table)):
        if not is_factorised(node):
            continue
        call, name = node.this, f"model {next(_numbers)}"
        table, *arguments = call.expressions
        keys = [key for arg in arguments if _is_partition(arg) for key in arg.find_all(exp.Column)]
        yield ModelFromScratch(
            name, call.name.lower(), _query_of(table.expressions[0], node), tuple(key.name for key in keys),
            tuple(arg for arg in arguments if not _is_partition(arg)),
            call.name.lower() == "ols" and isinstance(table.expressions[0], exp.Column),
        )  # fmt: skip
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(call.name))
        node.replace(exp.Table(this=exp.to_identifier(name, quoted=True), alias=alias))


def _is_partition(argument: exp.Expr) -> bool:
    return isinstance(argument, exp.Kwarg) and argument.this.name.lower() == "partition"


def _query_of(inner: exp.Expr, node: exp.Expr) -> exp.Expr:
    """Return the query in TABLE(…), with the common table expressions that it can read there."""
    if isinstance(inner, exp.Column):
        inner = exp.select("*").from_(exp.Table(this=inner.this, db=inner.args.get("table")))
    query = exp.select("*").from_(exp.Subquery(this=inner.copy(), alias=exp.TableAlias(this=exp.to_identifier("q"))))
    known, above, within = list[exp.Expr](), node.parent, list[exp.Expr]()
    while above is not None:
        within.append(above)
        declared = above.args.get("with_")
        mine = declared.expressions if declared else []
        before = next((i for i, cte in enumerate(mine) if any(cte is one for one in within)), len(mine))
        known[:0] = [cte.copy() for cte in mine[:before]]
        above = above.parent
    if known:
        query.set("with_", exp.With(expressions=known))
    return query


def _cells(model: ModelFromScratch, names: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
    """Yield count, sums, and the lower triangle of the sums of products, of columns or of products of columns."""
    degree = model.argument(0, "degree") or 1
    columns: list[Values] = [tuple(_as_lifted(x, degree) for x in column) for column in zip(*rows, strict=True)]
    places = range(len(columns))
    features = [(), *(f for t in range(1, degree + 1) for f in combinations_with_replacement(places, t))]
    sums = dict[tuple[int, ...], float]()
    for number, a in enumerate(features):
        for b in features[: number + 1]:
            product = tuple(sorted((*a, *b)))
            if product not in sums:
                sums[product] = _sum_of_products(columns, product) if product else float(len(rows))
            yield "*".join(names[i] for i in a), "*".join(names[i] for i in b), sums[product]


def _as_lifted(value: Any, degree: int = 1) -> float:
    """Convert a number to a double, an infinity for one whose highest power is none."""
    x = float(value)
    return x if abs(x) <= 2.0 ** (1022 // (2 * degree)) else x * math.inf


def _sum_of_products(columns: Sequence[Values], product: tuple[int, ...]) -> float:
    """Add up a product of columns exactly; one of ∞ and a value of another column counts as NaN."""
    involved = sorted({*product})
    if odd := [x for i in involved for x in columns[i] if not math.isfinite(x)]:
        return math.nan if len(involved) > 1 else sum(map(abs, odd)) if len(product) % 2 == 0 else sum(odd)
    factors = zip(*(map(Fraction, columns[i]) for i in product), strict=True)
    total = sum((math.prod(row, start=Fraction(1)) for row in factors), Fraction(0))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _coefficients(model: ModelFromScratch, names: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
    """Solve (X'X/n + λI) w = X'y/n as the least squares of X over √λ·I; no rows where the solution is not unique."""
    label = [name.lower() for name in names].index(model.argument(0, "label").lower())
    intercept, ridge = bool(model.argument(1, "intercept")), float(model.argument(2, "ridge") or 0)
    titles = [*(["intercept"] if intercept else []), *(name for i, name in enumerate(names) if i != label)]
    given, n = np.array([[*map(_as_lifted, row)] for row in rows]).reshape(len(rows), len(names)), len(rows)
    if n < (1 if ridge else len(titles)):
        return
    if not np.isfinite(given).all():
        yield from ((title, math.nan) for title in titles)
        return
    origin = given[0].copy() if intercept else np.zeros(len(names))  # NB: means may be far larger than deviations
    given -= origin
    x = np.hstack([np.ones((n, int(intercept))), np.delete(given, label, axis=1)]) / math.sqrt(n)
    penalty = np.sqrt(ridge) * np.eye(len(titles))[int(intercept) :]
    x, y = np.vstack([x, penalty]), np.concatenate([given[:, label] / math.sqrt(n), np.zeros(len(penalty))])
    scale = np.linalg.norm(x, axis=0)
    if not scale.all() or np.linalg.matrix_rank(x / scale, tol=1e-7) < len(titles):
        return
    found = np.linalg.lstsq(x / scale, y, rcond=None)[0] / scale
    if intercept:
        found[0] += origin[label] - np.delete(origin, label) @ found[1:]
    yield from zip(titles, map(float, found), strict=True)


def _information(model: ModelFromScratch, names: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
    """Yield Σ p(x, y) ln(p(x, y) / (p(x) p(y))) for each pair of columns."""
    n = len(rows)
    for i, j in combinations(range(len(names)) if rows else (), 2):
        x, y, both = (Counter(tuple(row[at] for at in places) for row in rows) for places in ((i,), (j,), (i, j)))
        terms = (c / n * math.log(n * c / (x[a,] * y[b,])) for (a, b), c in both.items())
        yield names[i], names[j], max(0.0, math.fsum(terms))


def _tree(model: ModelFromScratch, names: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the edges of the maximum spanning tree, as Kruskal finds them: from the best on, ties by their place."""
    parts = {name: frozenset((name,)) for name in names}
    for a, b, value in sorted(_information(model, names, rows), key=lambda row: -round(row[2], 9)):
        if parts[a] != parts[b]:
            parts |= dict.fromkeys(parts[a] | parts[b], parts[a] | parts[b])
            yield a, b, value


Compute = Callable[[ModelFromScratch, Sequence[str], Sequence[Row]], Iterable[Row]]
FUNCTIONS: dict[str, tuple[type[Model], Compute]] = {
    "cofactor": (Statistics, _cells),
    "ols": (LeastSquares, _coefficients),
    "mutual_information": (MutualInformation, _information),
    "chow_liu": (ChowLiu, _tree),
}
