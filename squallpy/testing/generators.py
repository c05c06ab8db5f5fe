"""Hypothesis strategies: random queries, of all that a query is made of, over random streams of inserts and deletes.

    cases()  →  Case(script="CREATE STREAM r0 (…); SELECT …", batches=[[("r0", +1, (1, None)), …], …])

Small domains and few rows, so that rows meet, repeat and cancel out; NULLs everywhere; deletes of rows that never were,
or that come later, or of all there is.
"""

from collections import Counter
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from squallpy.base.records import dataclass

DOMAINS: dict[str, list[Any]] = {
    "INT": [None, 0, 1, 2, 3, -1],
    "BIGINT": [None, 0, 1, 2, 2**40],
    "DECIMAL(8,2)": [None, Decimal("0.00"), Decimal("1.00"), Decimal("2.50"), Decimal("-1.25")],
    "VARCHAR": [None, "", "a", "b", "ab"],
    "DOUBLE": [None, 0.0, -0.0, 1.0, 2.5, -1.25],
    "BOOLEAN": [None, True, False],
    "DATE": [None, "2024-01-31", "2024-02-29", "1969-12-31"],
    "TIMESTAMP": [None, "2024-01-31 00:00:00", "2024-02-29 23:59:59.5", "1969-12-31 12:00:00"],
}
LITERALS = {
    "INT": "1", "BIGINT": "2", "DECIMAL(8,2)": "1.00", "VARCHAR": "'a'", "DOUBLE": "1.0", "BOOLEAN": "TRUE",
    "DATE": "DATE '2024-02-29'", "TIMESTAMP": "TIMESTAMP '2024-01-31 00:00:00'", "DECIMAL(38,2)": "1.00",
}  # fmt: skip
NUMBERS = ("INT", "BIGINT", "DECIMAL(8,2)", "DECIMAL(38,2)", "DOUBLE")
SUMS = {"INT": "BIGINT", "DECIMAL(8,2)": "DECIMAL(38,2)"}  # those that the oracle cannot make overflow
DEPTH = 2  # of queries inside queries
SOURCES = 3  # in a FROM
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")

Change = tuple[str, int, tuple[Any, ...]]  # stream, ±1, values


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the query: `t0.c1`."""

    name: str
    type: str

    @property
    def number(self) -> bool:
        return self.type in NUMBERS


Tables = dict[str, list[str]]  # the types of their columns c0, c1, …


@dataclass(frozen=True, slots=True)
class Scope:
    """Names that a query may use, of tables and of columns of enclosing queries, and the depth of subqueries allowed in
    it."""

    tables: Tables
    depth: int
    outer: tuple[Column, ...] = ()
    level: int = 0

    @property
    def alias(self) -> str:
        return "tuvw"[self.level]

    def inner_scope(self, columns: list[Column]) -> "Scope":
        """Build the scope of a subquery that sees these columns of the enclosing query."""
        return Scope(self.tables, self.depth - 1, tuple(columns), self.level + 1)


@dataclass(frozen=True, slots=True)
class Case:
    """A script and its batches."""

    script: str
    batches: list[list[Change]]

    def rebatch(self, size: int) -> "Case":
        """Split its changes into batches of `size`, the last one perhaps smaller."""
        changes = [change for batch in self.batches for change in batch]
        return Case(self.script, [changes[i : i + size] for i in range(0, len(changes), size)] or [[]])

    @property
    def is_empty_at_end(self) -> bool:
        """True if no rows are left after the last batch."""
        return not any(count_rows(self.batches).values())

    def text(self) -> str:
        """Write the case as a step test."""
        lines = [self.script]
        for batch in self.batches:
            lines += ["", "batch"]
            lines += [
                f"{'+' if sign > 0 else '-'} {name} {', '.join(map(format_value, row))}" for name, sign, row in batch
            ]
        return "\n".join(lines) + "\n"


def format_value(value: Any) -> str:
    """Format a value as step tests write it."""
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


@st.composite
def cases(draw: st.DrawFn, count: int = 1) -> Case:
    """Draw one to three streams, a query over them, or several, and two to five batches; then, perhaps, a batch that
    deletes all rows."""
    names = [f"r{i}" for i in range(draw(st.integers(1, 3)))]
    fields = st.tuples(st.sampled_from(list(DOMAINS)), st.sampled_from(["", "", " NOT NULL"]))
    streams = {name: draw(st.lists(fields, min_size=1, max_size=3)) for name in names}
    creates = [
        f"CREATE STREAM {name} ({', '.join(f'c{i} {type}{rest}' for i, (type, rest) in enumerate(declared))});"
        for name, declared in streams.items()
    ]
    tables = {name: [type for type, _ in declared] for name, declared in streams.items()}
    script = "\n".join([*creates, *(f"{draw(queries(tables))};" for _ in range(count))])
    rows = {name: draw(st.lists(rows_of(declared), min_size=2, max_size=6)) for name, declared in streams.items()}
    changes = draw(st.lists(batches(rows), min_size=2, max_size=5))
    insert_missing(changes, draw(st.sampled_from([True, True, False])))
    if draw(st.booleans()):
        changes.append([(name, -1, row) for (name, row), n in count_rows(changes).items() for _ in range(n)])
    return Case(script, changes)


def insert_missing(batches: list[list[Change]], always: bool) -> None:
    """Insert the rows that were deleted without being there, in each batch or else in the last: the oracle cannot hold
    them."""
    for n in range(0 if always else len(batches) - 1, len(batches)):
        owed = ((change, -times) for change, times in count_rows(batches[: n + 1]).items())
        batches[n] += [(name, 1, row) for (name, row), times in owed for _ in range(times)]


def count_rows(batches: list[list[Change]]) -> Counter[tuple[str, tuple[Any, ...]]]:
    """Count how often each row is there after some batches."""
    found = Counter[tuple[str, tuple[Any, ...]]]()
    for name, sign, row in (change for batch in batches for change in batch):
        found[name, row] += sign
    return found


@st.composite
def queries(draw: st.DrawFn, tables: Tables) -> str:
    """Draw [WITH …] SELECT …, or a set operation of two SELECTs, with [ORDER BY all columns LIMIT n]."""
    prefix = ""
    if draw(st.integers(0, 4)) == 0:
        text, types = draw(selects(Scope(tables, 1)))
        prefix, tables = f"WITH w0 AS ({text}) ", {**tables, "w0": types}
    text, types = draw(selects(Scope(tables, draw(st.integers(0, DEPTH))), top=True))
    if "" not in types and draw(st.integers(0, 4)) == 0:
        other, _ = draw(selects(Scope(tables, 0), types))
        text = f"{text} {draw(SETS)} {other}"
    if (
        not {"", "DOUBLE"} & {*types} and draw(st.integers(0, 5)) == 0
    ):  # NB: what is not selected must not say which rows are
        order = ", ".join(f"c{i}{draw(st.sampled_from(['', ' DESC']))}" for i in range(len(types)))
        text = f"SELECT * FROM ({text}) s ORDER BY {order} LIMIT {draw(st.integers(0, 3))}"
    return prefix + text


JOINS = ("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
SETS = st.sampled_from(["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])


@st.composite
def selects(draw: st.DrawFn, scope: Scope, wanted: list[str] | None = None, top: bool = False) -> tuple[str, list[str]]:
    """Draw SELECT … AS c0, … FROM … [WHERE …] [GROUP BY … [HAVING …]], and the types of its columns.

    With `wanted` it has columns of those types; at the `top` some may be of a type that is not known: "".
    """
    sources, columns = draw(froms(scope))
    where = draw(st.lists(predicates(scope, columns), max_size=2))
    tail = f" FROM {sources}" + (f" WHERE {' AND '.join(where)}" if where else "")
    if wanted is not None:
        items = [(draw(of_type(columns, type)), type) for type in wanted]
        return f"SELECT {format_items(items)}{tail}", wanted
    kind = draw(st.sampled_from(["rows", "distinct", "groups", "groups"]))
    keys = draw(st.lists(typed_key(columns), min_size=kind != "groups", max_size=2, unique=True))
    if kind != "groups":
        items = [*keys, *([draw(scalars(scope, columns))] if scope.depth and draw(st.booleans()) else [])]
        if draw(st.integers(0, 3)) == 0:
            items.append(draw(windows(columns)))
        if draw(st.integers(0, 7)) == 0:
            tail += f" QUALIFY {draw(windows(columns, counts=True))[0]} {draw(st.sampled_from(OPERATORS))} 2"
        return f"SELECT {'DISTINCT ' if kind == 'distinct' else ''}{format_items(items)}{tail}", [
            type for _, type in items
        ]
    aggregates = st.one_of(typed_aggregate(columns), aggregate(columns)) if top else typed_aggregate(columns)
    items = [*keys, *draw(st.lists(aggregates, min_size=not keys, max_size=2))]
    grouped = [Column(text, type) for text, type in keys if text in {c.name for c in columns}]
    if scope.depth and draw(st.integers(0, 3)) == 0:
        items.append(draw(scalars(scope, grouped)))
    having = ""
    if keys and draw(st.integers(0, 3)) == 0:
        count = f"COUNT(*) {draw(st.sampled_from(OPERATORS))}"
        having = f" HAVING {count} {draw(scalars(scope, grouped, counts=True))[0] if scope.depth else 1}"
    by = draw(st.sampled_from([*["{}"] * 5, "ROLLUP ({})", "CUBE ({})"])).format(", ".join(text for text, _ in keys))
    tail += f" GROUP BY {by}" if keys else ""
    return f"SELECT {format_items(items)}{tail}{having}", [type for _, type in items]


def format_items(items: list[tuple[str, str]]) -> str:
    return ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))


@st.composite
def froms(draw: st.DrawFn, scope: Scope) -> tuple[str, list[Column]]:
    """Draw a FROM clause of tables and subqueries, with commas or joins between them, and the columns that it gives."""
    commas: bool = draw(st.booleans())
    kinds = st.sampled_from([*scope.tables, *(["nested"] if scope.depth else [])])
    text, columns = "", list[Column]()
    for i, use in enumerate(draw(st.lists(kinds, min_size=1, max_size=SOURCES))):
        source, types = use, scope.tables.get(use, [])
        if use == "nested":
            source, types = draw(selects(Scope(scope.tables, scope.depth - 1)))
            source = f"({source})"
        name = f"{scope.alias}{i}"
        mine = [Column(f"{name}.c{j}", type) for j, type in enumerate(types)]
        if not i:
            text = f"{source} {name}"
        elif commas:
            text += f", {source} {name}"
        else:
            word = draw(st.sampled_from(JOINS))
            text += f" {word} {source} {name} ON {draw(ons(word, columns, mine))}"
            if "SEMI" in word or "ANTI" in word:
                continue
        columns += mine
    return text, columns


@st.composite
def ons(draw: st.DrawFn, word: str, left: list[Column], right: list[Column]) -> str:
    """Draw the condition of a join: an equality of both sides or, where the oracle supports it, any condition."""
    equal = [f"{a.name} = {b.name}" for a in left for b in right if a.type == b.type]
    if word == "FULL JOIN" or (equal and draw(st.integers(0, 3))):
        return draw(st.sampled_from(equal)) if equal else "1 = 0"
    return draw(conditions([*left, *right]))


def predicates(scope: Scope, columns: list[Column]) -> st.SearchStrategy[str]:
    """Generate a condition of WHERE: on the columns, also on those of the enclosing query, or with a subquery."""
    plain = conditions(columns)
    choices = [plain, plain]
    if scope.outer:
        choices += [correlations(columns, scope.outer)] * 2
    if scope.depth:
        inside = subqueries(scope, columns)
        choices += [inside, st.builds("({} OR {})".format, inside, plain), st.builds("NOT ({})".format, inside)]
    return st.one_of(choices)


@st.composite
def correlations(draw: st.DrawFn, columns: list[Column], outer: tuple[Column, ...]) -> str:
    """Draw a comparison of a column with one of the enclosing query; 1 = 1 if no two have the same type."""
    pairs = [(a, b) for a in columns for b in outer if a.type == b.type]
    if not pairs:
        return "1 = 1"
    a, b = draw(st.sampled_from(pairs))
    return f"{a.name} {draw(st.sampled_from(['=', '=', '=', '<', '<>', '>=']))} {b.name}"


@st.composite
def subqueries(draw: st.DrawFn, scope: Scope, columns: list[Column]) -> str:
    """Draw a condition that contains a subquery, correlated or not."""
    within = scope.inner_scope(columns)
    tail, inner = draw(tails(within))
    own = draw(st.sampled_from(inner))
    choices = [f"EXISTS (SELECT 1 {tail})", f"NOT EXISTS (SELECT {own.name} {tail})"]
    alike = [c for c in columns if c.type == own.type]
    if alike:
        column, operator = draw(st.sampled_from(alike)), draw(st.sampled_from(OPERATORS))
        choices += [f"{column.name} {word} (SELECT {own.name} {tail})" for word in ("IN", "NOT IN")]
        choices += [f"{column.name} {operator} {word} (SELECT {own.name} {tail})" for word in ("ANY", "ALL")]
    value, type = draw(scalars(scope, columns))
    alike = [c for c in columns if c.type == type]
    other = draw(st.sampled_from(alike)).name if alike else LITERALS[type]
    choices += [f"{other} {draw(st.sampled_from(OPERATORS))} {value}", f"{value} IS NULL"]
    return draw(st.sampled_from(choices))


@st.composite
def scalars(draw: st.DrawFn, scope: Scope, columns: list[Column], counts: bool = False) -> tuple[str, str]:
    """Draw a scalar subquery, correlated or not, and its type; with `counts` it is a COUNT(*), to be compared with
    one."""
    tail, inner = draw(tails(scope.inner_scope(columns)))
    if not counts and draw(st.integers(0, 5)) == 0:
        key, first = draw(st.sampled_from(inner)), draw(st.sampled_from(inner))
        way = draw(st.sampled_from(["", " DESC", " NULLS LAST", " DESC NULLS FIRST"]))
        return f"(SELECT {first.name} {tail} ORDER BY {key.name}{way}, {first.name} NULLS LAST LIMIT 1)", first.type
    value, type = ("COUNT(*)", "BIGINT") if counts else draw(typed_aggregate(inner))
    return f"(SELECT {value} {tail})", type


@st.composite
def tails(draw: st.DrawFn, scope: Scope) -> tuple[str, list[Column]]:
    """Draw FROM … [WHERE …] of a subquery over one table, and the columns that it gives."""
    table = draw(st.sampled_from(list(scope.tables)))
    columns = [Column(f"{scope.alias}0.c{j}", type) for j, type in enumerate(scope.tables[table])]
    where = draw(st.lists(predicates(scope, columns), max_size=2))
    return f"FROM {table} {scope.alias}0" + (f" WHERE {' AND '.join(where)}" if where else ""), columns


@st.composite
def typed_aggregate(draw: st.DrawFn, columns: list[Column]) -> tuple[str, str]:
    """Draw an aggregate and its type."""
    column = draw(st.sampled_from(columns))
    choices = [
        ("COUNT(*)", "BIGINT"),
        (f"COUNT({column.name})", "BIGINT"),
        (f"COUNT(DISTINCT {column.name})", "BIGINT"),
    ]
    choices += [(f"{extreme}({column.name})", column.type) for extreme in ("MIN", "MAX")]
    choices.append((f"QUANTILE_DISC({column.name}, {draw(st.sampled_from(['0', '0.3', '0.5', '1']))})", column.type))
    if column.type in ("INT", "BIGINT"):
        choices += [(f"BIT_{operator}({column.name})", column.type) for operator in ("AND", "OR", "XOR")]
    if column.type == "VARCHAR":
        way = draw(st.sampled_from(["", " DESC", " NULLS LAST"]))
        by = f"{draw(st.sampled_from([c.name for c in columns]))}{way}, {column.name}"
        choices += [(f"STRING_AGG({column.name}, ',' ORDER BY {by})", "VARCHAR")] * 2
    if column.type in ("INT", "BIGINT", "DOUBLE"):
        choices += [(f"MEDIAN({distinct}{column.name})", "DOUBLE") for distinct in ("", "DISTINCT ")]
    if column.type in SUMS:
        choices += [(f"SUM({distinct}{column.name})", SUMS[column.type]) for distinct in ("", "", "DISTINCT ")]
        choices.append((f"SUM(DISTINCT {LITERALS[column.type]})", SUMS[column.type]))
    text, type = draw(st.sampled_from(choices))
    if draw(st.integers(0, 4)) == 0:
        text += f" FILTER (WHERE {draw(comparisons(columns))})"
    return text, type


@st.composite
def windows(draw: st.DrawFn, columns: list[Column], counts: bool = False) -> tuple[str, str]:
    """Draw a window function that does not depend on the order of ties, and its type; with `counts` a BIGINT."""
    names = st.sampled_from([c.name for c in columns])
    parts, keys = draw(st.lists(names, max_size=2, unique=True)), draw(st.lists(names, max_size=2, unique=True))
    ways = [f"{key}{draw(st.sampled_from(['', ' DESC', ' NULLS LAST', ' DESC NULLS FIRST']))}" for key in keys]
    frame = f"PARTITION BY {', '.join(parts)}" if parts else ""
    frame += f" ORDER BY {', '.join(ways)}" if ways else ""
    choices = [("COUNT(*)", "BIGINT"), *([("RANK()", "BIGINT"), ("DENSE_RANK()", "BIGINT")] * 2 if ways else [])]
    column = draw(st.sampled_from(columns))
    if not counts:
        choices += [(f"{extreme}({column.name})", column.type) for extreme in ("MIN", "MAX")]
        choices += [(f"SUM({column.name})", SUMS[column.type])] * 2 if column.type in SUMS else []
    text, type = draw(st.sampled_from(choices))
    if len(columns) < 5 and draw(st.integers(0, 3)) == 0:
        # in an order of all there is, rows that are alike are so in all
        every = ", ".join(draw(st.permutations([c.name for c in columns])))
        found = [] if counts else [(f"LAG({column.name})", column.type)]
        text, type = draw(st.sampled_from([("ROW_NUMBER()", "BIGINT"), *found]))
        frame = f"{frame.partition('ORDER BY')[0]} ORDER BY {every}"
    return f"{text} OVER ({frame})", type


@st.composite
def typed_key(draw: st.DrawFn, columns: list[Column]) -> tuple[str, str]:
    """Draw a column, or sometimes an expression, with its type."""
    column = draw(st.sampled_from(columns))
    if draw(st.integers(0, 3)):
        return column.name, column.type
    return draw(keys_of(columns, column)), column.type


@st.composite
def of_type(draw: st.DrawFn, columns: list[Column], type: str) -> str:
    """Draw a column of a type, if there is one, or a constant of that type."""
    alike = [c.name for c in columns if c.type == type]
    return draw(st.sampled_from([*alike, *alike, f"CAST(NULL AS {type})", f"CAST({LITERALS[type]} AS {type})"]))


@st.composite
def keys_of(draw: st.DrawFn, columns: list[Column], column: Column) -> str:
    """Draw an expression over one or two columns, of the type of the first."""
    alike = [c for c in columns if c.type == column.type]
    other = draw(st.sampled_from(alike))
    choices = [f"COALESCE({column.name}, {LITERALS[column.type]})", f"COALESCE({column.name}, {other.name})"]
    choices += [f"CASE WHEN {draw(comparisons(columns))} THEN {column.name} ELSE {other.name} END"]
    choices += [f"NULLIF({column.name}, {other.name})"]
    if column.type == "INT":
        choices += [f"{column.name} + {other.name}", f"{column.name} * 2 - 1"]
    elif column.type == "VARCHAR":
        choices += [f"SUBSTRING({column.name}, 1, 1)", f"UPPER({column.name})"]
    return draw(st.sampled_from(choices))


@st.composite
def aggregate(draw: st.DrawFn, columns: list[Column]) -> tuple[str, str]:
    """Draw an aggregate of an expression, whose type is not known."""
    column = draw(st.sampled_from(columns))
    numbers = [c for c in columns if c.number]
    choices = [f"COUNT({column.name})"]
    if numbers:
        a, b = draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
        choices += [f"AVG({a.name})", f"AVG(DISTINCT {a.name})", f"SUM({a.name} + 1)"]
        choices += [f"SUM({a.name} - {b.name})", f"AVG({a.name} - {b.name})", f"SUM(COALESCE({a.name}, {b.name}))"]
        choices += [f"COUNT(CASE WHEN {a.name} > {b.name} THEN {column.name} END)"]
        choices += [f"SUM(CASE WHEN {draw(conditions(columns))} THEN {a.name} ELSE 0 END)"]
        if not {"BIGINT", "DECIMAL(38,2)"} & {a.type, b.type}:  # the oracle's products overflow first
            choices += [f"SUM({a.name} * {b.name})"]
    return draw(st.sampled_from(choices)), ""


def conditions(columns: list[Column]) -> st.SearchStrategy[str]:
    """Generate comparisons, and combinations of them by AND, OR and NOT."""
    return st.recursive(
        comparisons(columns),
        lambda inner: st.one_of(
            st.builds("({} OR {})".format, inner, inner),
            st.builds("({} AND {})".format, inner, inner),
            st.builds("NOT ({})".format, inner),
        ),
        max_leaves=3,
    )


@st.composite
def comparisons(draw: st.DrawFn, columns: list[Column]) -> str:
    column = draw(st.sampled_from(columns))
    others = [c for c in columns if c.type == column.type or (c.number and column.number)]
    others = [c for c in others if c != column] or others
    other, operator = draw(st.sampled_from(others)), draw(st.sampled_from(OPERATORS))
    choices = [
        f"{column.name} = {other.name}",
        f"{column.name} {operator} {other.name}",
        f"{column.name} {operator} {LITERALS[column.type]}",
        f"{column.name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL",
    ]
    if column.number:
        choices += [f"{column.name} BETWEEN 0 AND 2", f"{column.name} IN (1, 2)", f"{column.name} + {other.name} > 1"]
        choices += [f"{column.name} + 1 = {other.name}", f"{column.name} NOT IN (1, NULL)"]
    elif column.type == "VARCHAR":
        choices += [f"{column.name} LIKE 'a%'", f"{column.name} NOT IN ('a', 'b')", f"LENGTH({column.name}) < 2"]
    elif column.type == "BOOLEAN":
        choices += [column.name, f"COALESCE({column.name}, {other.name})"]
    else:
        choices += [f"EXTRACT(MONTH FROM {column.name}) = 2", f"{column.name} + INTERVAL '1' MONTH > {other.name}"]
    return draw(st.sampled_from(choices))


def rows_of(declared: list[tuple[str, str]]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Generate rows of a stream, without NULL where a column is NOT NULL."""
    return st.tuples(*(st.sampled_from([v for v in DOMAINS[type] if v is not None or not r]) for type, r in declared))


def batches(rows: dict[str, list[tuple[Any, ...]]]) -> st.SearchStrategy[list[Change]]:
    """Generate no changes or up to eight, more inserts than deletes."""
    signs = st.sampled_from([1, 1, 1, -1, -1])
    some = st.one_of([st.tuples(st.just(name), signs, st.sampled_from(own)) for name, own in rows.items()])
    return st.sampled_from([1, 4, 6, 8, 8, 0]).flatmap(lambda size: st.lists(some, min_size=size, max_size=size))
