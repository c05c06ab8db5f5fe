"""`session.model`: what a regression that a view keeps fresh predicts of rows, against numpy."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import squallpy
from squallpy import Session, SquallError

SALES = {"town": "VARCHAR", "size": "DOUBLE", "rooms": "INT", "price": "DECIMAL(12,2)"}
ROWS: list[dict[str, Any]] = [
    {"town": "x", "size": 50.0, "rooms": 2, "price": "100"},
    {"town": "x", "size": 70.0, "rooms": 3, "price": "150.50"},
    {"town": "x", "size": 90.0, "rooms": 3, "price": "170"},
    {"town": "y", "size": 60.0, "rooms": 2, "price": "121"},
    {"town": "y", "size": 64.0, "rooms": 4, "price": "140"},
    {"town": None, "size": 80.0, "rooms": 5, "price": "155"},
    {"town": None, "size": 81.0, "rooms": 5, "price": "160"},
]
NEW: list[dict[str, Any]] = [{"town": "y", "size": 55.0, "rooms": 3}, {"town": "x", "size": 72.0, "rooms": 1}]
IS_X = "CASE WHEN town = 'x' THEN 1 ELSE 0 END"
MODELS = {
    "plain": "ols(TABLE(SELECT size, rooms, price FROM sales), 'price')",
    "opened": "ols(TABLE(sales), 'price', TRUE)",
    "products": "ols(TABLE(SELECT s.size AS m2, s.size * s.rooms / 10 AS both, price FROM sales AS s), 'price', TRUE)",
    "category": f"ols(TABLE(SELECT size, {IS_X} AS is_x, price FROM sales), 'price', intercept => TRUE)",
    "ridge": "ols(TABLE(SELECT size, price FROM sales), 'price', intercept => TRUE, ridge => 3, solver => 'bgd')",
    "towns": "ols(TABLE(SELECT town, size, price FROM sales) PARTITION BY town, 'price', intercept => TRUE)",
    "thousands": "ols(TABLE(SELECT size / 1000 AS size, price FROM sales), label => 'price')",
    "singular": "ols(TABLE(SELECT size, 2 * size AS again, price FROM sales WHERE size < 51), 'price')",
}


@pytest.fixture(scope="module")
def s() -> Iterator[Session]:
    with squallpy.connect() as session:
        session.stream("sales", schema=SALES)
        for name, call in MODELS.items():
            session.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM {call}")
        session.sql("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM sales")
        session.sql(f"CREATE MATERIALIZED VIEW no_group AS SELECT feature, coefficient FROM {MODELS['towns']}")
        session.sql(
            f"CREATE MATERIALIZED VIEW twice AS SELECT feature, 2 * coefficient AS coefficient FROM {MODELS['plain']}"
        )
        session.push("sales", ROWS)
        session.run_until_caught_up()
        yield session


def columns(model: str, rows: list[dict[str, Any]]) -> Any:
    """Compute the features of a model with numpy, the intercept first."""
    size, rooms = (np.array([row[name] for row in rows], float) for name in ("size", "rooms"))
    one, is_x = np.ones(len(rows)), np.array([row["town"] == "x" for row in rows], float)
    found = {
        "plain": [size, rooms], "opened": [one, size, rooms], "products": [one, size, size * rooms / 10],
        "category": [one, size, is_x], "ridge": [one, size], "towns": [one, size], "thousands": [size / 1000],
    }  # fmt: skip
    return np.stack(found[model], axis=1)


def fit(model: str, rows: list[dict[str, Any]], ridge: float = 0) -> Any:
    x, y = columns(model, rows), np.array([float(row["price"]) for row in rows])
    penalty = ridge * np.diag([0.0, *[1.0] * (x.shape[1] - 1)])
    return np.linalg.solve(x.T @ x / len(rows) + penalty, x.T @ y / len(rows))


@pytest.mark.parametrize("model", ["plain", "opened", "products", "category", "ridge", "thousands"])
def oracle_predictions_are_those_of_numpy(s: Session, model: str) -> None:
    expected = columns(model, NEW) @ fit(model, ROWS, 3 if model == "ridge" else 0)
    np.testing.assert_allclose(s.model(model).predict(NEW), expected, rtol=1e-9)


def oracle_each_group_has_its_own_coefficients(s: Session) -> None:
    rows = [{"town": town, "size": size} for town in ("y", None, "x", "nowhere") for size in (10, 20)]
    found = s.model("towns").predict(rows).to_pylist()
    assert found[6:] == [None, None]
    for at, town in enumerate(("y", None, "x")):
        own = [row for row in ROWS if row["town"] == town]
        expected = np.array([[1, 10], [1, 20]]) @ fit("towns", own)
        np.testing.assert_allclose(found[2 * at : 2 * at + 2], expected, rtol=1e-9)


@pytest.mark.parametrize("form", ["arrow", "batch", "pandas", "polars", "columns", "decimals", "reversed"])
def test_rows_are_of_any_form(s: Session, form: str) -> None:
    table = pa.table({"SIZE": [55.0, 72.0], "rooms": pa.array([3, 1], pa.int8()), "other": [{"a": 1}, None]})
    rows: Any = {"arrow": table, "batch": table.to_batches()[0], "columns": table.to_pydict()}.get(form)
    if form in ("pandas", "polars"):
        rows = table.to_pandas() if form == "pandas" else pytest.importorskip("polars").from_arrow(table)
    elif form == "decimals":
        rows = [{"size": Decimal("55"), "rooms": 3}, {"size": Decimal("72"), "rooms": 1}]
    elif form == "reversed":
        rows = table.select(["rooms", "SIZE"])
    assert s.model("plain").predict(rows).equals(s.model("plain").predict(NEW))


def test_a_feature_is_taken_by_its_name_where_its_columns_are_missing(s: Session) -> None:
    by_name = [{"m2": row["size"], "both": row["size"] * row["rooms"] / 10} for row in NEW]
    assert s.model("products").predict(by_name).equals(s.model("products").predict(NEW))


def test_null_where_a_feature_or_the_model_is_missing(s: Session) -> None:
    found = s.model("plain").predict([{"size": None, "rooms": 1}, {"size": 1, "rooms": None}, {"size": 1, "rooms": 1}])
    assert [value is None for value in found.to_pylist()] == [True, True, False]
    assert s.model("plain").predict({"size": [None], "rooms": [None]}).to_pylist() == [None]
    assert s.model("singular").predict(NEW).to_pylist() == [None, None]
    assert s.model("towns").predict([{"town": None, "size": None}]).to_pylist() == [None]
    assert s.model("plain").predict({"size": [], "rooms": []}).to_pylist() == []


def test_it_is_as_of_the_last_batch() -> None:
    with squallpy.connect() as session:
        sales = session.stream("sales", schema={"size": "DOUBLE", "price": "DOUBLE"})
        session.sql("CREATE MATERIALIZED VIEW m AS SELECT * FROM ols(TABLE(sales), 'price')")
        model = session.model("m")
        assert model.predict([{"size": 10}]).to_pylist() == [None]
        sales.push([{"size": 1.0, "price": 2.0}])
        session.step()
        assert model.predict([{"size": 10}]).to_pylist() == [20.0]
        sales.push([{"size": 1.0, "price": 4.0}])
        session.step()
        assert model.predict([{"size": 10}]).to_pylist() == [30.0]


FAULTS: dict[str, tuple[Callable[[Session], Any], str]] = {
    "an unknown view": (lambda s: s.model("plin"), 'SQ2001 unknown materialized view "plin", did you mean "plain"?'),
    "no model": (lambda s: s.model("n").predict(NEW), "SQ2005 session:1:38: n is no model, a model is a view of"),
    "other coefficients": (lambda s: s.model("twice").predict(NEW), "SQ2005 session:1:42: twice is no model"),
    "no group": (lambda s: s.model("no_group").predict(NEW), 'SQ2005 no_group has no column "town"'),
    "a column": (
        lambda s: s.model("plain").predict([{"size": 1, "room": 2}]),
        'SQ4002 the rows given to the model plain have no column "rooms", did you mean "room"?',
    ),
    "a column of a product": (
        lambda s: s.model("products").predict([{"size": 1}]),
        'SQ4002 the rows given to the model products have no column "rooms", which "both" is computed of',
    ),
    "a group": (
        lambda s: s.model("towns").predict([{"size": 1}]),
        'SQ4002 the rows given to the model towns have no column "town"',
    ),
    "a text": (
        lambda s: s.model("plain").predict([{"size": "big", "rooms": 2}]),
        'SQ2005 the feature "size" of the model plain is of numbers, and here it is VARCHAR',
    ),
    "a group of another type": (
        lambda s: s.model("towns").predict([{"size": 1, "town": 7}]),
        'SQ2005 "town" is BIGINT in the rows given to the model towns, and VARCHAR there',
    ),
    "no table": (lambda s: s.model("plain").predict(7), "SQ7011 a int was given to the model plain"),
}


@pytest.mark.parametrize("fault", FAULTS)
def fault_mistakes_are_one_line(s: Session, fault: str) -> None:
    act, line = FAULTS[fault]
    with pytest.raises(SquallError) as caught:
        act(s)
    assert str(caught.value).startswith(line), caught.value
