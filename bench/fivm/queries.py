"""The texts of a schema's cofactor matrix: naive SQL, F/SQL, and the table function; declarations of its streams.

SELECT COUNT(*) AS c_total, SUM(house.price) AS s_price, …, SUM(house.price * shop.tesco), … FROM house NATURAL JOIN …
SELECT SUM(c_by_house * c_by_shop), … FROM (SELECT postcode, COUNT(*) AS c_by_house, … GROUP BY postcode) AS by_house …
SELECT * FROM cofactor(TABLE(SELECT postcode, livingarea, … FROM house NATURAL JOIN …))
"""

from collections.abc import Callable

from bench.fivm.schemas import Schema, View, children

CHANGES = "__op"  # the operation column of streams with deletes


def declarations(schema: Schema, deletes: bool) -> str:
    """Write the declarations of the streams, their files in the folder `data`."""
    return "".join(_declaration(schema, relation, deletes) for relation in schema.relations)


def _declaration(schema: Schema, relation: str, deletes: bool) -> str:
    types = {c: "BIGINT" if c in schema.join_variables else "DOUBLE" for c in schema.columns[relation]}
    columns = [f"    {column} {type} NOT NULL" for column, type in types.items()]
    if deletes:
        columns += [f"    {id_of(relation)} BIGINT NOT NULL", f"    PRIMARY KEY ({id_of(relation)})"]
    op = f", op '{CHANGES}'" if deletes else ""
    body = ",\n".join(columns)
    return f"CREATE STREAM {relation} (\n{body}\n) USING parquet OPTIONS (path 'data/{relation}.parquet'{op});\n\n"


def id_of(relation: str) -> str:
    """Name the column that tells the rows of a relation apart, where some are deleted."""
    return f"{relation}_id"


def naive(schema: Schema) -> str:
    """Write a sum for each entry of the matrix over the join."""
    owners = {column: relation for relation, columns in schema.columns.items() for column in columns}

    def term(some: tuple[str, ...]) -> str:
        return " * ".join(_value(schema, owners[x], x) for x in some)

    sums = _sums("total", schema.features, term)
    return f"SELECT {sums}\nFROM {' NATURAL JOIN '.join(schema.relations)};\n"


def factorised(schema: Schema) -> str:
    """Write a sum for each entry of the matrix over subqueries that have these sums by key (F/SQL)."""
    return f"{_subquery(schema, schema.tree)};\n"


def cofactor(schema: Schema) -> str:
    """Write the table function over the join."""
    joined = " NATURAL JOIN ".join(schema.relations)
    return f"SELECT *\nFROM cofactor(TABLE(\n    SELECT {', '.join(schema.features)}\n    FROM {joined}\n));\n"


FORMS: dict[str, Callable[[Schema], str]] = {"naive": naive, "fsql": factorised, "cofactor": cofactor}


def entries(features: tuple[str, ...]) -> list[tuple[str, ...]]:
    """List what is summed: nothing for the count, each variable, each pair of the lower triangle row by row.

    entries(("x", "y"))   →   [(), ("x",), ("y",), ("x", "x"), ("y", "x"), ("y", "y")]
    """
    pairs = [(a, b) for i, a in enumerate(features) for b in features[: i + 1]]
    return [(), *((feature,) for feature in features), *pairs]


def _subquery(schema: Schema, view: View, indent: str = "") -> str:
    lifted = schema.lifted(view)
    below = [(child, frozenset(schema.features_of(child))) for child in children(view)]
    [*relations] = [part for part in view.parts if isinstance(part, str)]

    def term(some: tuple[str, ...]) -> str:
        own = [_value(schema, relations[0] if relations else "", x) for x in some if x in lifted]
        sums = [_name(child.name, tuple(x for x in some if x in within)) for child, within in below]
        return " * ".join(own + sums)

    deeper = f"{indent}    "
    parts = [
        part if isinstance(part, str) else f"({_subquery(schema, part, deeper)}) AS {part.name}" for part in view.parts
    ]
    joined = f"\n{indent}NATURAL JOIN ".join(parts)
    keys = "".join(f"{column}, " for column in view.key)
    grouped = f" GROUP BY {', '.join(view.key)}" if view.key else ""
    return f"SELECT {keys}{_sums(view.name, schema.features_of(view), term)}\n{indent}FROM {joined}{grouped}"


def _sums(view: str, features: tuple[str, ...], term: Callable[[tuple[str, ...]], str]) -> str:
    terms = [(term(some), _name(view, some)) for some in entries(features)]
    return ", ".join(f"{f'SUM({product})' if product else 'COUNT(*)'} AS {name}" for product, name in terms)


def _name(view: str, some: tuple[str, ...]) -> str:
    """Name a sum; a view's count after the view, for NATURAL JOIN equates what is called alike."""
    return "_".join(("csq"[len(some)], *(some or (view,))))


def _value(schema: Schema, relation: str, variable: str) -> str:
    """Write a variable as a DOUBLE, by its relation if no other has it."""
    if variable in schema.join_variables:
        return f"CAST({variable} AS DOUBLE)"
    return f"{relation}.{variable}"
