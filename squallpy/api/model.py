"""Regressions in Python: the coefficients that a view of `ols(…)` keeps fresh, and what they predict of rows.

    s.sql("CREATE MATERIALIZED VIEW m AS SELECT * FROM ols(TABLE(SELECT size, size * size AS squared, y FROM r), 'y')")
    s.model("m").predict([{"size": 50.0}, {"size": None}])   →   [100.0, NULL]

Rows are those of FROM inside TABLE(…): its SELECT list is computed of them, as of the rows that were learned from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from squallpy.api.view import View
from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.base.types import DOUBLE
from squallpy.frontend.query import SelectText, parse_select

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from squallpy.runtime.evaluate.vectors import Vec

FEATURE, COEFFICIENT, INTERCEPT = "feature", "coefficient", "intercept"
_HINT = "a model is a view of SELECT * FROM ols(TABLE(…), 'label', …)"


@dataclass(frozen=True)
class Regression:
    """A call of `ols`, as the query of a view has it.

    Args:
        items: The SELECT list inside TABLE(…) by lower name; without those of `*`.
        label: The column that is predicted, in lower case.
        groups: The columns of PARTITION BY, in lower case.
        is_open: True if the SELECT list has `*`, or there is none.
    """

    query: SelectText
    items: "Mapping[str, exp.Expr]"
    label: str
    groups: tuple[str, ...]
    has_intercept: bool
    is_open: bool

    @property
    def ambiguous(self) -> set[str]:
        """Names, in lower case, that columns of several tables have."""
        from sqlglot import exp

        columns = {(c.table.lower(), c.name.lower()) for item in self.items.values() for c in item.find_all(exp.Column)}
        return {name for table, name in columns if any(name == other and table != of for of, other in columns)}

    @property
    def features(self) -> list[str]:
        """The features that the SELECT list names, in lower case."""
        return [name for name in self.items if name != self.label and name not in self.groups]


class Model(View):
    """A regression that is kept fresh: a view of `SELECT * FROM ols(…)`."""

    def predict(self, rows: Any) -> "pa.DoubleArray":
        """Predict the label of rows by the coefficients as of the last batch.

        Args:
            rows: An Arrow table or batch, a pandas or polars frame, a list of dicts, or lists by column. A feature is
                computed of their columns as TABLE(…) does or, where it lacks those, is the column of its name.

        Returns:
            A DOUBLE for each row, in their order. NULL where a feature is NULL, where the group of the row has no
            coefficients, and everywhere while the model has none: before rows have come, or if they are collinear.

        Raises:
            SquallError: SQ4002 if a column is missing, SQ2005 if one has a type that the model does not take, SQ7011
                for what is no table.
        """
        from squallpy.live.pushed_tables import arrow_table

        version = None
        while version != self._session.version:  # NB: both are of one definition
            version = self._session.version
            regression = read_regression(self._session.entries.maintained[self.name.lower()].text, self.name)
            coefficients = self.to_arrow()
        coefficients = coefficients.rename_columns([name.lower() for name in coefficients.column_names])
        for name in (FEATURE, COEFFICIENT, *regression.groups):
            if name not in coefficients.column_names:
                raise SquallError("SQ2005", f'{self.name} has no column "{name}", and is no model', hint=_HINT)
        return _predict(self, regression, coefficients, arrow_table(rows, f"given to the model {self.name}"))


def read_regression(query: SelectText, name: str) -> Regression:
    """Read the call of `ols` that a view selects from; SQ2005 if it is another query."""
    from sqlglot import exp

    query = parse_select(query.script, query.start, query.end)  # NB: binding has rewritten the tree that is kept
    match query.ast:
        case exp.Select(args={"from_": exp.From(this=exp.Table(this=exp.Anonymous() as call))}) as select if (
            call.name.lower() == "ols"
            and all(isinstance(item, exp.Star | exp.Column) for item in select.expressions)
            and {key for key, part in select.args.items() if part} <= {"expressions", "from_", "kind", "order"}
        ):
            return _read_call(query, call)
    raise SquallError("SQ2005", f"{name} is no model", query.span(query.ast), _HINT)


def _read_call(query: SelectText, call: "exp.Anonymous") -> Regression:
    from sqlglot import exp

    named = {each.this.name.lower(): each.expression for each in call.expressions if isinstance(each, exp.Kwarg)}
    table, *plain = [each for each in call.expressions if not isinstance(each, exp.Kwarg)]
    label, intercept = (
        named.get(name) or (plain[place] if place < len(plain) else None)
        for place, name in enumerate(("label", "intercept"))
    )
    if "label" in named:
        intercept = named.get("intercept") or next(iter(plain), None)
    listed = table.expressions[0].expressions if isinstance(table.expressions[0], exp.Select) else [exp.Star()]
    items = {each.alias_or_name.lower(): each.unalias() for each in listed if not each.is_star}
    partition = named.get("partition")
    keys = partition.find_all(exp.Column) if partition else ()
    return Regression(
        query, items, label.name.lower() if label else "", tuple(dict.fromkeys(key.name.lower() for key in keys)),
        isinstance(intercept, exp.Boolean) and bool(intercept.this), len(items) < len(listed),
    )  # fmt: skip


def _predict(model: Model, regression: Regression, coefficients: "pa.Table", rows: "pa.Table") -> "pa.DoubleArray":
    """Add up the features of rows, weighted by the coefficients of their groups."""
    import numpy as np
    import pyarrow as pa

    from squallpy.runtime.sinks.upsert_table import number_rows

    names = np.array([name.lower() for name in coefficients[FEATURE].to_pylist()], object)
    known = sorted({*names} - ({INTERCEPT} if regression.has_intercept else set()))
    features, keys = _columns(model, regression, known if regression.is_open else regression.features, rows)
    learned = coefficients.select([*keys])
    groups = pa.table({name: _joined(model, learned[name].combine_chunks(), key, name) for name, key in keys.items()})
    codes = number_rows(groups, range(len(keys))) if keys else np.zeros(len(names) + len(rows), np.int64)
    learned_codes, codes = codes[: len(names)], codes[len(names) :]
    count = int(max(learned_codes.max(initial=0), codes.max(initial=0))) + 1
    valid, found = np.isin(codes, learned_codes), np.zeros(len(rows))
    for name in ([INTERCEPT] if regression.has_intercept else []) + [*features]:
        weights, own = np.zeros(count), names == name
        weights[learned_codes[own]] = coefficients[COEFFICIENT].filter(pa.array(own, pa.bool_()))
        values, are_there = features.get(name, (1.0, None))
        with np.errstate(invalid="ignore"):  # NB: what a NULL stands in for
            found += weights[codes] * values
        valid = valid if are_there is None else valid & are_there
    return pa.array(found, pa.float64(), mask=~valid)


def _columns(
    model: Model, regression: Regression, features: Sequence[str], rows: "pa.Table"
) -> tuple[dict[str, "Vec"], dict[str, "pa.Array"]]:
    """Compute features as vectors of DOUBLE, and groups as arrays, by name, in the order of the rows."""
    import pyarrow as pa
    from sqlglot import exp

    from squallpy.live.row_query import project_rows
    from squallpy.runtime.evaluate.casts import cast
    from squallpy.runtime.evaluate.vectors import Vec, to_arrow

    items = [_item(model, regression, name, rows) for name in (*features, *regression.groups)]
    read = {column.name.lower() for item in items for column in item.find_all(exp.Column)}
    used = rows.select([i for i, name in enumerate(rows.column_names) if name.lower() in read])
    for i, column in enumerate(used.columns):
        if pa.types.is_null(column.type):
            used = used.set_column(i, used.column_names[i], pa.nulls(len(rows), pa.float64()))
    listed = [exp.alias_(item, f"c{i}") for i, item in enumerate(items)]
    select = exp.select(*listed).from_(exp.Table(this=exp.to_identifier(model.name, quoted=True)))
    found = project_rows(replace(regression.query, ast=select), model.name, used) if items else []
    columns = dict[str, Vec]()
    for (type, vector), name in zip(found, features, strict=False):
        if not type.is_numeric:
            message = f'the feature "{name}" of the model {model.name} is of numbers, and here it is {type}'
            raise SquallError("SQ2005", message)
        columns[name] = cast(vector, type, DOUBLE, len(rows), name)
    groups = (to_arrow(vector, type, len(rows)) for type, vector in found[len(features) :])
    return columns, dict(zip(regression.groups, groups, strict=True))


def _item(model: Model, regression: Regression, name: str, rows: "pa.Table") -> "exp.Expr":
    """Write a feature or group over the columns of rows: as TABLE(…) computes it if they are there, else its name."""
    from sqlglot import exp

    has, item = {each.lower() for each in rows.column_names}, regression.items.get(name)
    wanted = [name]
    if item is not None:
        wanted = [column.name for column in item.find_all(exp.Column)]
        if all(each.lower() in has and each.lower() not in regression.ambiguous for each in wanted):
            return item.transform(
                lambda node: exp.column(node.name, quoted=True) if isinstance(node, exp.Column) else node
            )
    if name in has:
        return exp.column(name, quoted=True)
    lacks = next((each for each in wanted if each.lower() not in has), name)
    of = "" if lacks.lower() == name else f', which "{name}" is computed of'
    message = f'the rows given to the model {model.name} have no column "{lacks}"{of}'
    raise SquallError("SQ4002", message, hint=nearest(lacks, rows.column_names))


def _joined(model: Model, learned: "pa.Array", key: "pa.Array", name: str) -> "pa.Array":
    """Append a group's column of the given rows to its values in the model; SQ2005 if their types differ."""
    import pyarrow as pa

    from squallpy.runtime.formats.type_conversion import sql_type

    if key.null_count == len(key):
        key = pa.nulls(len(key), learned.type)
    try:
        both = [pa.table({name: each}) for each in (learned, key)]
        return pa.concat_tables(both, promote_options="permissive").column(0).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        types = f"{sql_type(key.type)} in the rows given to the model {model.name}, and {sql_type(learned.type)} there"
        raise SquallError("SQ2005", f'"{name}" is {types}') from None
