"""Hypothesis strategies: random queries over random streams of inserts and deletes, nested up to two deep.

    cases()  →  Case(script="CREATE STREAM r0 (…); SELECT …", batches=[[("r0", +1, (1, None)), …], …])

Small domains, so that rows meet, repeat and cancel out; NULLs everywhere; deletes of rows that never were, or that
come later.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

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


@dataclass(frozen=True, slots=True)
class Case:
    """A script and its batches."""

    script: str
    batches: list[list[Change]]

    def rebatched(self, size: int) -> "Case":
        """The same changes in batches of `size`, those of the last batch perhaps fewer."""
        changes = [change for batch in self.batches for change in batch]
        return Case(self.script, [changes[i : i + size] for i in range(0, len(changes), size)] or [[]])

    def text(self) -> str:
        """As a step test."""
        lines = [self.script]
        for batch in self.batches:
            lines += ["", "batch"]
            lines += [f"{'+' if sign > 0 else '-'} {name} {', '.join(map(shown, row))}" for name, sign, row in batch]
        return "\n".join(lines) + "\n"


def shown(value: Any) -> str:
    """A value as step tests write it."""
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One to three streams, a query over one to three uses of them, up to five batches."""
    streams = {
        f"r{i}": draw(st.lists(st.sampled_from(list(DOMAINS)), min_size=1, max_size=3))
        for i in range(draw(st.integers(1, 3)))
    }
    creates = [
        f"CREATE STREAM {name} ({', '.join(f'c{i} {type}' for i, type in enumerate(types))});"
        for name, types in streams.items()
    ]
    script = "\n".join([*creates, f"{draw(queries(streams))};"])
    return Case(script, draw(st.lists(batches(streams), min_size=1, max_size=5)))


@st.composite
def froms(draw: st.DrawFn, streams: dict[str, list[str]], depth: int) -> tuple[str, list[Column]]:
    """FROM streams and queries, and the columns that it gives."""
    uses = draw(st.lists(st.sampled_from([*streams, *(["nested"] if depth else [])]), min_size=1, max_size=3))
    sources, columns = [], []
    for i, use in enumerate(uses):
        text, types = draw(nested(streams, depth - 1)) if use == "nested" else (use, streams[use])
        sources.append(f"{text} t{i}")
        columns += [Column(f"t{i}.c{j}", type) for j, type in enumerate(types)]
    return ", ".join(sources), columns


@st.composite
def nested(draw: st.DrawFn, streams: dict[str, list[str]], depth: int) -> tuple[str, list[str]]:
    """A query in FROM: (SELECT … AS c0, … AS c1 …), and the types of its columns."""
    sources, columns = draw(froms(streams, depth))
    where = draw(st.lists(conditions(columns), max_size=1))
    filtered = f" WHERE {where[0]}" if where else ""
    keys = draw(st.lists(st.sampled_from(columns), max_size=2, unique=True))
    aggregates = draw(st.lists(typed_aggregate(columns), min_size=not keys, max_size=2))
    items = [(key.name, key.type) for key in keys] + aggregates
    shown = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))
    grouped = f" GROUP BY {', '.join(key.name for key in keys)}" if keys else ""
    having = draw(st.sampled_from(["", "", " HAVING COUNT(*) > 1"])) if keys else ""
    return f"(SELECT {shown} FROM {sources}{filtered}{grouped}{having})", [type for _, type in items]


@st.composite
def typed_aggregate(draw: st.DrawFn, columns: list[Column]) -> tuple[str, str]:
    """An aggregate and its type."""
    column = draw(st.sampled_from(columns))
    choices = [("COUNT(*)", "BIGINT"), (f"COUNT({column.name})", "BIGINT")]
    choices += [(f"{extreme}({column.name})", column.type) for extreme in ("MIN", "MAX")]
    if column.type in SUMS:
        choices.append((f"SUM({column.name})", SUMS[column.type]))
    return draw(st.sampled_from(choices))


@st.composite
def queries(draw: st.DrawFn, streams: dict[str, list[str]]) -> str:
    """SELECT … FROM … [WHERE …] [GROUP BY …] [HAVING …]."""
    sources, columns = draw(froms(streams, draw(st.integers(0, DEPTH))))
    where = draw(st.lists(conditions(columns), max_size=3))
    filtered = f" WHERE {' AND '.join(where)}" if where else ""
    keys = draw(st.lists(keys_of(columns), max_size=2, unique=True))
    kind: str = draw(st.sampled_from(["rows", "groups", "distinct"]))
    if kind != "groups":
        items = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys or [columns[0].name]))
        return f"SELECT {'DISTINCT ' if kind == 'distinct' else ''}{items} FROM {sources}{filtered}"
    aggregates = draw(st.lists(aggregate(columns), min_size=1, max_size=3))
    items = ", ".join(
        [f"{key} AS k{i}" for i, key in enumerate(keys)] + [f"{a} AS a{i}" for i, a in enumerate(aggregates)]
    )
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    with_having: bool = draw(st.booleans())
    having = f" HAVING COUNT(*) {draw(st.sampled_from(OPERATORS))} 2" if keys and with_having else ""
    return f"SELECT {items} FROM {sources}{filtered}{grouped}{having}"


@st.composite
def keys_of(draw: st.DrawFn, columns: list[Column]) -> str:
    """A column, or an expression over one or two."""
    column = draw(st.sampled_from(columns))
    choices = [column.name, column.name, f"COALESCE({column.name}, {LITERALS[column.type]})"]
    if column.number:
        other = draw(st.sampled_from([c for c in columns if c.number]))
        choices += [f"{column.name} + {other.name}", f"CASE WHEN {column.name} > {other.name} THEN 1 END"]
    elif column.type == "VARCHAR":
        choices += [f"SUBSTRING({column.name}, 1, 1)", f"UPPER({column.name})"]
    elif column.type != "BOOLEAN":
        choices += [f"EXTRACT(YEAR FROM {column.name})", f"{column.name} - INTERVAL '1' MONTH"]
    return draw(st.sampled_from(choices))


@st.composite
def aggregate(draw: st.DrawFn, columns: list[Column]) -> str:
    column = draw(st.sampled_from(columns))
    numbers = [c for c in columns if c.number]
    choices = ["COUNT(*)", f"COUNT({column.name})", f"MIN({column.name})", f"MAX({column.name})"]
    if numbers:
        a, b = draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
        choices += [f"SUM({a.name})", f"AVG({a.name})", f"SUM({a.name} + 1)"]
        choices += [f"SUM({a.name} - {b.name})", f"AVG({a.name} - {b.name})", f"SUM(COALESCE({a.name}, {b.name}))"]
        choices += [f"COUNT(CASE WHEN {a.name} > {b.name} THEN {column.name} END)"]
        choices += [f"SUM(CASE WHEN {draw(conditions(columns))} THEN {a.name} ELSE 0 END)"]
        if not {"BIGINT", "DECIMAL(38,2)"} & {a.type, b.type}:  # the oracle's products overflow first
            choices += [f"SUM({a.name} * {b.name})"]
    return draw(st.sampled_from(choices))


def conditions(columns: list[Column]) -> st.SearchStrategy[str]:
    """Comparisons and what AND, OR and NOT make of them."""
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


def batches(streams: dict[str, list[str]]) -> st.SearchStrategy[list[Change]]:
    """Up to eight changes; more inserts than deletes."""
    signs = st.sampled_from([1, 1, 1, -1])
    rows = [
        st.tuples(st.just(name), signs, st.tuples(*(st.sampled_from(DOMAINS[type]) for type in types)))
        for name, types in streams.items()
    ]
    return st.lists(st.one_of(rows), max_size=8)
