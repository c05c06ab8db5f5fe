"""Hypothesis strategy: joins of three streams or more, by random predicates, over random inserts and deletes."""

from hypothesis import strategies as st

from squallpy.testing.generators import Case, batches, count_rows, insert_missing, rows_of

TYPES = ("INT", "INT", "BIGINT", "DATE", "VARCHAR", "DECIMAL(8,2)")
PREDICATES = ("{a} = {b}", "{a} < {b}", "{a} >= {b}", "{a} <> {b}", "{a} < {b} OR {a} IS NULL", "{b} >= {a}")
BANDS = ("ABS({a} - {b}) <= 1", "{a} BETWEEN {b} - 1 AND {b} + 2", "{a} + {b} > 2", "{a} * 2 = {b}")
NUMBERS = ("INT", "BIGINT", "DECIMAL(8,2)")
SELECTS = ("rows", "rows", "count", "sums", "groups", "distinct", "least", "nested")


@st.composite
def theta_join_cases(draw: st.DrawFn) -> Case:
    """Draw three or four streams, a join of all by random predicates, and batches; then, perhaps, deletes of all."""
    count = draw(st.sampled_from([3, 3, 3, 4]))
    fields = st.tuples(st.sampled_from(TYPES), st.sampled_from(["", " NOT NULL"]))
    streams = {f"r{i}": draw(st.lists(fields, min_size=1, max_size=3)) for i in range(count)}
    creates = [
        f"CREATE STREAM {name} ({', '.join(f'c{i} {type}{rest}' for i, (type, rest) in enumerate(declared))});"
        for name, declared in streams.items()
    ]
    columns = {name: [(f"{name}.c{i}", type) for i, (type, _) in enumerate(of)] for name, of in streams.items()}
    names, conditions = list(streams), list[str]()
    for i in range(1, count):
        before = [column for name in names[:i] for column in columns[name]]
        for _ in range(draw(st.sampled_from([1, 1, 2]))):
            conditions.append(draw(_predicate(before, columns[names[i]])))
    everything = [column for of in columns.values() for column in of]
    query = draw(_select(everything, f"FROM {', '.join(names)} WHERE {' AND '.join(f'({c})' for c in conditions)}"))
    rows = {name: draw(st.lists(rows_of(declared), min_size=2, max_size=5)) for name, declared in streams.items()}
    changes = draw(st.lists(batches(rows), min_size=2, max_size=4))
    insert_missing(changes, always=True)
    if draw(st.booleans()):
        changes.append([(name, -1, row) for (name, row), n in count_rows(changes).items() for _ in range(n)])
    return Case("\n".join([*creates, f"{query};"]), changes)


@st.composite
def _predicate(draw: st.DrawFn, before: list[tuple[str, str]], own: list[tuple[str, str]]) -> str:
    """Draw a predicate on a column of a stream and one of those before it; TRUE if no two have the same type."""
    pairs = [(a, b, type) for a, type in before for b, other in own if type == other]
    if not pairs:
        return "TRUE"
    a, b, type = draw(st.sampled_from(pairs))
    choices = (*PREDICATES, *BANDS) if type in NUMBERS else PREDICATES
    return draw(st.sampled_from(choices)).format(a=a, b=b)


@st.composite
def _select(draw: st.DrawFn, columns: list[tuple[str, str]], tail: str) -> str:
    """Draw what is selected of the join."""
    key, numbers = draw(st.sampled_from(columns))[0], [name for name, type in columns if type in NUMBERS]
    number = draw(st.sampled_from(numbers)) if numbers else "1"
    match draw(st.sampled_from(SELECTS)):
        case "rows":
            kept = draw(st.lists(st.sampled_from([name for name, _ in columns]), min_size=1, max_size=4, unique=True))
            return f"SELECT {', '.join(f'{name} AS k{i}' for i, name in enumerate(kept))} {tail}"
        case "count":
            return f"SELECT COUNT(*) AS n {tail}"
        case "sums":
            return f"SELECT SUM({number}) AS s, COUNT({key}) AS n {tail}"
        case "groups":
            return f"SELECT {key} AS k, COUNT(*) AS n, SUM({number}) AS s {tail} GROUP BY {key}"
        case "distinct":
            return f"SELECT DISTINCT {key} AS k {tail}"
        case "least":
            return f"SELECT {key} AS k, MIN({number}) AS least {tail} GROUP BY {key}"
    having = "HAVING COUNT(*) > (SELECT COUNT(*) FROM r0 )"
    return f"SELECT {columns[0][0]} AS k, COUNT(*) AS n {tail} GROUP BY {columns[0][0]} {having}"
