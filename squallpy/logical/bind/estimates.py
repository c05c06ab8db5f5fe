"""Online aggregation: what the rows read so far of streams in random order tell of all of them, with confidence bounds.

SELECT * FROM estimate(TABLE(SELECT g, SUM(x) AS s FROM r GROUP BY g), confidence => 0.95)
→   SELECT g, f · s AS s, f · s - h AS s_low, f · s + h AS s_high    with   f = N / n,   h = z · f · √(v · (q - s² / n))
    over sums s of x and q of x² by g, the number n of rows that were read, N of all, and v = (1 - n / N) · n / (n - 1)

Of n rows without replacement (Hellerstein, Haas and Wang, Online Aggregation, SIGMOD 1997). Over a join of several
streams in random order it is a ripple join (Haas and Hellerstein, SIGMOD 1999): q is, for each stream, the sum over its
rows of the squares of what each of them contributes, and h² is the sum over the streams.
"""

from statistics import NormalDist
from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT
from squallpy.catalog.catalog import Entry, qualify_name
from squallpy.catalog.relation import ROW_COUNT, Field, Relation
from squallpy.frontend.window_clause import CLAUSE
from squallpy.logical.bind.literals import read_number

if TYPE_CHECKING:
    from squallpy.logical.bind.table_functions import TableFunctionCall

CONFIDENCE = 0.95
DIALECT = "squall"
AGGREGATES = ("SUM", "COUNT", "AVG")
_HINT = "write estimate(TABLE(SELECT g, SUM(x) AS s FROM r GROUP BY g), confidence => 0.95)"
_AROUND, _INSTEAD = "write it around estimate", "leave it out"
_SETS = ("rollup", "cube", "grouping_sets", "all")
_REFUSED = {
    "with_": ("WITH", _INSTEAD),
    "distinct": ("DISTINCT", _INSTEAD),
    "having": ("HAVING", "write WHERE around estimate"),
    "qualify": ("QUALIFY", _AROUND),
    "order": ("ORDER BY", _AROUND),
    "limit": ("LIMIT", _AROUND),
    "offset": ("OFFSET", _AROUND),
    "laterals": ("LATERAL", _INSTEAD),
    CLAUSE: ("a window", _INSTEAD),
}


@dataclass(frozen=True, slots=True)
class Sampled:
    """A stream in random order: its name in the query, and that of the relation with the number of all its rows."""

    relation: Relation
    alias: str
    count: str


@dataclass(frozen=True, slots=True)
class Key:
    """A key of GROUP BY in the SELECT list, by its number among them."""

    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate of the SELECT list, by its number there: SUM, COUNT or AVG of a value; COUNT(*) has none."""

    name: str
    number: int
    kind: str
    value: exp.Expr | None

    def sum(self) -> exp.Expr:
        """Write what rows contribute, summed."""
        return self.count() if self.kind == "COUNT" else _call("SUM", _double(self.value))

    def square(self) -> exp.Expr:
        """Write the squares of what rows contribute, summed, where each row contributes one value."""
        if self.kind == "COUNT":
            return self.count()
        return _call("SUM", exp.Mul(this=_double(self.value), expression=_double(self.value)))

    def count(self) -> exp.Expr:
        """Write the number of values, of which AVG is the mean."""
        return _double(_call("COUNT", self.value or exp.Star()))


def estimate(call: "TableFunctionCall") -> exp.Subquery:
    """Write the query for which a call of `estimate` stands; SQ2005 or SQ3001 if it has what cannot be estimated."""
    inner = _read_query(call)
    named = [arg for arg in call.node.expressions[1:] if isinstance(arg, exp.Kwarg)]
    if unknown := next((arg.name.lower() for arg in named if arg.name.lower() != "confidence"), None):
        raise call.error("SQ2005", f'estimate has no argument "{unknown}"', nearest(unknown, ["confidence"]))
    if len(call.node.expressions) > 2:
        raise call.error("SQ2005", f"estimate takes a table and a confidence, not {len(call.node.expressions)}", _HINT)
    confidence = call.arguments.take("confidence")
    call.arguments.done("confidence")
    level = CONFIDENCE if confidence is None else read_number(confidence)
    if level is None or not 0 < level < 1:
        given = confidence.sql(DIALECT) if confidence else ""
        raise call.error("SQ2012", f"a confidence of {given}", "it is a number between 0 and 1, such as 0.95")
    sampled, is_joined = _find_sampled(call, inner), bool(inner.args.get("joins"))
    _check_subqueries(call, inner)
    _check_sampled(call, sampled, is_joined)
    keys, items = _read_items(call, inner)
    measures = [item for item in items if isinstance(item, Measure)]
    sums = [
        _sum_rows(inner, keys, measures, each, k) if is_joined else _sum_values(inner, keys, measures)
        for k, each in enumerate(sampled)
    ]
    z = NormalDist().inv_cdf((1 + level) / 2)
    spread = _add_variances(_join_sums(sums, sampled, len(keys)), measures, len(sampled))
    columns = [column for item in items for column in _select(item, z)]
    return exp.Subquery(this=exp.select(*columns, dialect=DIALECT).from_(spread.subquery("spread")))


def _read_query(call: "TableFunctionCall") -> exp.Select:
    """Return the query inside of TABLE; SQ2005 if there is none, SQ3001 if it has a clause that is not estimated."""
    inner = call.inner
    if not isinstance(inner, exp.Select) or not inner.args.get("from_"):
        raise call.error("SQ2005", "estimate reads a query with aggregates", _HINT)
    for part, (name, hint) in _REFUSED.items():
        if inner.args.get(part):
            raise call.error("SQ3001", f"{name} inside of estimate", hint)
    group = inner.args.get("group")
    sets = (exp.Rollup, exp.Cube, exp.GroupingSets)
    if group and (group.find(*sets) or any(group.args.get(part) for part in _SETS)):
        raise call.error("SQ3001", "GROUP BY with several sets of keys inside of estimate", "list the keys")
    return inner


def _find_sampled(call: "TableFunctionCall", inner: exp.Select) -> list[Sampled]:
    """Find the streams in random order that a query reads."""
    joins = inner.args.get("joins") or []
    found = list[Sampled]()
    for at, node in enumerate(_sources(inner)):
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise call.error("SQ3001", "a subquery in FROM inside of estimate", "name streams and tables")
        entry = _find(call, node)
        if not isinstance(entry, Relation):
            raise call.error("SQ3001", f'the view "{node.name}" inside of estimate', "name the streams that it reads")
        side = (joins[at - 1].args.get("side") or joins[at - 1].args.get("kind") or "").upper() if at else ""
        if side not in ("", "INNER", "CROSS"):
            raise call.error("SQ3001", f"{side} JOIN inside of estimate", "join by INNER JOIN")
        if entry.stream and not entry.is_random:
            hint = "declare it with OPTIONS (order 'random'), or as a TABLE"
            raise call.error("SQ2005", f'"{entry.name}" comes in the order of its source, which is no sample', hint)
        if entry.is_random:
            found.append(Sampled(entry, node.alias_or_name, _declare_count(call, entry)))
    if not found:
        hint = "declare one with OPTIONS (order 'random')"
        raise call.error("SQ2005", "estimate reads at least one stream in random order", hint)
    return found


def _check_sampled(call: "TableFunctionCall", found: list[Sampled], is_joined: bool) -> None:
    """Raise SQ3001 for a stream that is read twice, SQ2005 for one that is joined and whose rows have no key."""
    for each in found:
        if sum(other.relation is each.relation for other in found) > 1:
            message = f'"{each.relation.name}" twice inside of estimate: its rows are a sample, their pairs are none'
            raise call.error("SQ3001", message, "declare a second stream with another seed")
        if is_joined and not each.relation.primary_key:
            message = f'estimate of a join needs the PRIMARY KEY of "{each.relation.name}", by which its rows differ'
            raise call.error("SQ2005", message, "declare it")


def _check_subqueries(call: "TableFunctionCall", inner: exp.Select) -> None:
    """Raise SQ3001 for subqueries over what changes, whose answers are not those over all rows."""
    nodes = {id(node) for node in _sources(inner)}
    for node in (each for each in inner.find_all(exp.Table) if id(each) not in nodes):
        entry = _find(call, node)
        if not isinstance(entry, Relation) or entry.stream:
            message = f'a subquery over "{node.name}" inside of estimate'
            raise _at(call, node, "SQ3001", message, "join it, or read a TABLE")


def _sources(inner: exp.Select) -> list[exp.Expr]:
    """List what is in FROM."""
    return [inner.args["from_"].this, *(join.this for join in inner.args.get("joins") or [])]


def _find(call: "TableFunctionCall", table: exp.Table) -> Entry:
    """Look up a declaration; SQ2001 if there is none, SQ3001 for a query of WITH."""
    if not table.db and table.name.lower() in {cte.alias.lower() for cte in call.query.ast.find_all(exp.CTE)}:
        message = f'"{table.name}" of WITH inside of estimate'
        raise _at(call, table, "SQ3001", message, "name the streams that it reads")
    try:
        return call.catalog.find(qualify_name(table.db, table.name))
    except SquallError as error:
        raise error.at(call.query.span(table)) from None


def _declare_count(call: "TableFunctionCall", relation: Relation) -> str:
    """Declare the relation with the number of all rows of a stream; returned is its name."""
    name = f"{relation.name.replace('.', '_')}_row_count"
    fields = (Field("total", BIGINT, False),)
    call.catalog.declare_implied(Relation(name, fields, False, ROW_COUNT, span=relation.span, counts=relation))
    return name


def _read_items(call: "TableFunctionCall", inner: exp.Select) -> tuple[list[exp.Expr], list[Key | Measure]]:
    """Read the keys of a query, and its SELECT list: names with numbers of keys, and aggregates."""
    group = inner.args.get("group")
    written = [item.unalias() for item in inner.expressions]
    names = {item.alias.lower(): item.unalias() for item in inner.expressions if item.alias}
    keys = list[exp.Expr]()
    for key in group.expressions if group else ():
        if isinstance(key, exp.Literal) and not key.is_string and 0 < int(key.name) <= len(written):
            key = written[int(key.name) - 1]
        elif isinstance(key, exp.Column) and not key.table and key.name.lower() in names:
            key = names[key.name.lower()]
        keys.append(key)
    items, owners = list[Key | Measure](), _find_owners(call, inner)
    spelled = [_spell_alike(key, owners) for key in keys]
    for item, value in zip(inner.expressions, written, strict=True):
        like = _spell_alike(value, owners)
        number = next((n for n, key in enumerate(spelled) if key == like), None)
        if number is not None:
            name = item.alias or item.output_name or value.sql(DIALECT).lower()
            items.append(Key(name, number))
            continue
        kind = value.name.upper() if isinstance(value, exp.Anonymous) else ""
        argument = value.expressions[0] if kind in AGGREGATES and len(value.expressions) == 1 else None
        if argument is None or isinstance(argument, exp.Distinct):
            hint = "SUM, COUNT and AVG are, and keys of GROUP BY"
            raise _at(call, value, "SQ3001", f"{value.sql(DIALECT)} is not estimated", hint)
        name = item.alias or value.sql(DIALECT).lower()
        items.append(Measure(name, len(items), kind, None if isinstance(argument, exp.Star) else argument))
    if not any(isinstance(item, Measure) for item in items):
        raise call.error("SQ2005", "estimate reads a query with aggregates", _HINT)
    return keys, items


def _find_owners(call: "TableFunctionCall", inner: exp.Select) -> dict[str, str]:
    """Map the columns that only one relation of a query has to its name there, all in lower case."""
    owners = dict[str, str]()
    for node in _sources(inner):
        entry = _find(call, node) if isinstance(node, exp.Table) else None
        for field in entry.fields if isinstance(entry, Relation) else ():
            name = field.name.lower()
            owners[name] = "" if name in owners else node.alias_or_name.lower()
    return owners


def _spell_alike(value: exp.Expr, owners: dict[str, str]) -> exp.Expr:
    """Copy an expression whose columns have names in lower case and quotes, with those of their relations.

    X, `x` and r.x  →  "r"."x"
    """

    def spell(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        name = node.name.lower()
        return exp.column(name, node.table.lower() or owners.get(name) or None, quoted=True)

    return value.transform(spell)


def _at(call: "TableFunctionCall", node: exp.Expr, code: str, message: str, hint: str) -> SquallError:
    return SquallError(code, message, call.query.span(node), hint)


def _sum_values(inner: exp.Select, keys: list[exp.Expr], measures: list[Measure]) -> exp.Select:
    """Write the sums of a single stream: each row contributes one value.

    s the sum, q that of its squares; for AVG also c the number of values, x the sum of products of both, y of squares.
    """
    columns = [exp.alias_(key.copy(), f"g{n}") for n, key in enumerate(keys)]
    for each in measures:
        i = each.number
        columns += [exp.alias_(each.sum(), f"s{i}"), exp.alias_(each.square(), f"q{i}_0")]
        if each.kind == "AVG":
            columns += [exp.alias_(each.count(), f"c{i}"), exp.alias_(each.sum(), f"x{i}_0")]
            columns.append(exp.alias_(each.count(), f"y{i}_0"))
    return _read(inner, columns, keys)


def _sum_rows(inner: exp.Select, keys: list[exp.Expr], measures: list[Measure], of: Sampled, k: int) -> exp.Select:
    """Write the sums of a join: first what each row of its k-th stream contributes, then sums over these rows."""
    by_row = [*keys, *(exp.column(name, of.alias, quoted=True) for name in of.relation.primary_key)]
    columns = [exp.alias_(key.copy(), f"g{n}") for n, key in enumerate(by_row)]
    outer = [f"g{n}" for n in range(len(keys))]
    sums = list(outer)
    for each in measures:
        i = each.number
        columns.append(exp.alias_(each.sum(), f"m{i}"))
        sums += [f"SUM(m{i}) AS s{i}", f"SUM(m{i} * m{i}) AS q{i}_{k}"]
        if each.kind == "AVG":
            columns.append(exp.alias_(each.count(), f"n{i}"))
            sums += [f"SUM(n{i}) AS c{i}", f"SUM(m{i} * n{i}) AS x{i}_{k}", f"SUM(n{i} * n{i}) AS y{i}_{k}"]
    rows = _read(inner, columns, by_row).subquery("by_row")
    return exp.select(*sums, dialect=DIALECT).from_(rows).group_by(*outer, dialect=DIALECT)


def _read(inner: exp.Select, columns: list[exp.Expr], keys: list[exp.Expr]) -> exp.Select:
    """Write a SELECT of columns from what a query reads, where it says, grouped by keys."""
    query = exp.select(*columns)
    for part in ("from_", "joins", "where"):
        value = inner.args.get(part)
        query.set(part, [each.copy() for each in value] if isinstance(value, list) else value and value.copy())
    return query.group_by(*(key.copy() for key in keys))


def _join_sums(sums: list[exp.Select], sampled: list[Sampled], keys: int) -> exp.Select:
    """Write the join of the sums over each stream, with read0, read1, … rows that were read of all0, all1, …"""
    first, *others = sums
    query = exp.select("d0.*").from_(first.subquery("d0"))
    for k, other in enumerate(others, 1):
        squares = [item.alias for item in other.expressions if item.alias[:1] in ("q", "x", "y")]
        same = [f"d0.g{n} <=> d{k}.g{n}" for n in range(keys)]
        kind = {"on": same} if same else {"join_type": "cross"}
        query = query.select(*(f"d{k}.{name}" for name in squares))
        query = query.join(other.subquery(f"d{k}"), dialect=DIALECT, **kind)
    for k, each in enumerate(sampled):
        read = exp.select("CAST(COUNT(*) AS DOUBLE) AS n", dialect=DIALECT).from_(_table(each.relation.name))
        query = query.join(read.subquery(f"r{k}"), join_type="cross")
        query = query.join(_table(each.count, f"t{k}"), join_type="cross")
        query = query.select(f"r{k}.n AS read{k}", f"CAST(t{k}.total AS DOUBLE) AS all{k}", dialect=DIALECT)
    return query


def _add_variances(moments: exp.Select, measures: list[Measure], streams: int) -> exp.Select:
    """Write the factor from what was read to all, and the variances of sums and means, by the numbers of measures.

    A stream of which all was read varies nothing, and of one row it is unknown what others would be.
    """
    scales = (f"CASE WHEN read{k} > 0 THEN all{k} / read{k} WHEN all{k} = 0 THEN 1 END" for k in range(streams))
    columns = ["*", f"{' * '.join(scales)} AS f"]
    for each in measures:
        i, terms = each.number, list[str]()
        for k in range(streams):
            q, s = (f"COALESCE({name}, 0)" if each.kind == "COUNT" else name for name in (f"q{i}_{k}", f"s{i}"))
            square = f"{q} - {s} * {s} / read{k}"
            if each.kind == "AVG":
                square = f"q{i}_{k} - s{i} / c{i} * (2 * x{i}_{k} - s{i} / c{i} * y{i}_{k})"
            share = f"(1 - read{k} / all{k}) * read{k} / (read{k} - 1)"
            terms.append(f"CASE WHEN read{k} >= all{k} THEN 0 * s{i} WHEN read{k} > 1 THEN {share} * ({square}) END")
        columns.append(f"{' + '.join(terms)} AS v{i}")
    return exp.select(*columns, dialect=DIALECT).from_(moments.subquery("moments"))


def _select(item: Key | Measure, z: float) -> list[exp.Expr]:
    """Write the columns of an item of the SELECT list: a key, or an estimate with its bounds."""
    if isinstance(item, Key):
        return [exp.alias_(exp.column(f"g{item.number}"), item.name, quoted=True)]
    i = item.number
    value = {"SUM": f"f * s{i}", "COUNT": f"f * COALESCE(s{i}, 0)", "AVG": f"s{i} / c{i}"}[item.kind]
    scale = f"{z!r} / c{i}" if item.kind == "AVG" else f"{z!r} * f"
    half = f"{scale} * CASE WHEN v{i} < 0 THEN 0 ELSE SQRT(v{i}) END"  # NB: below 0 by rounding
    texts = {item.name: value, f"{item.name}_low": f"{value} - {half}", f"{item.name}_high": f"{value} + {half}"}
    return [exp.alias_(exp.maybe_parse(text, dialect=DIALECT), name, quoted=True) for name, text in texts.items()]


def _table(name: str, alias: str | None = None) -> exp.Table:
    schema, _, bare = name.rpartition(".")
    table = exp.to_identifier(bare, quoted=True)
    return exp.Table(
        this=table, db=exp.to_identifier(schema, quoted=True) if schema else None,
        alias=exp.TableAlias(this=exp.to_identifier(alias)) if alias else None,
    )  # fmt: skip


def _call(name: str, value: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[value.copy()])


def _double(value: exp.Expr | None) -> exp.Expr:
    assert value is not None
    return exp.cast(value.copy(), "DOUBLE")
