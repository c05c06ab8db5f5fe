"""What `bench.fivm` compares computes the same matrix: SQL in its forms, C++ by hand, NumPy over the join."""

import shutil
from pathlib import Path

import duckdb
import numpy as np
import pytest

from bench.data.queries import Query
from bench.data.tables import Stream
from bench.engines.squall_local import LocalCompiled, LocalFinal
from bench.fivm import data, native
from bench.fivm.answers import moments, of_answer, of_join, verdict
from bench.fivm.constant_mix import growth
from bench.fivm.data import ORDERS, Dataset
from bench.fivm.queries import CHANGES, FORMS, cofactor, declarations, id_of
from bench.fivm.run_one import settled
from bench.fivm.schemas import SCHEMAS, Schema, View, by
from bench.measure.batches import Watch
from squallpy.catalog.relation import MULT

STAR = Schema(
    "star", {"r": "k x r", "s": "k y", "t": "k z"}, View("total", (), (by("k", "r"), by("k", "s"), by("k", "t")))
)
SNOWFLAKE = Schema(
    "snowflake",
    {"fact": "a b x", "near": "a c y", "far": "c z", "beside": "a b w"},
    View(
        "total", (), (View("by_b", ("a",), (by("a b", "fact"), by("a b", "beside"))), by("a", "near", by("c", "far")))
    ),
)


def small(scale: float, schema: Schema, random: np.random.Generator) -> data.Tables:
    """Make 40 rows of small integers in each relation."""
    return {
        relation: {column: random.integers(1, 5, int(40 * scale)) for column in columns}
        for relation, columns in schema.columns.items()
    }


@pytest.fixture(autouse=True)
def generators(monkeypatch: pytest.MonkeyPatch) -> None:
    for schema in (STAR, SNOWFLAKE):
        make = lambda scale, share, random, schema=schema: small(scale, schema, random)  # noqa: E731
        monkeypatch.setitem(data.GENERATORS, schema.name, make)


def stream_of(dataset: Dataset, form: str, folder: Path, batch_rows: int = 30) -> Stream:
    dataset.write(folder)
    script = folder / f"{form}.sql"
    script.write_text(declarations(dataset.schema, dataset.deletes > 0) + FORMS[form](dataset.schema))
    return Stream(Query(form, script), folder, batch_rows, "round-robin")


@pytest.mark.parametrize("deletes", [0.0, 0.5])
@pytest.mark.parametrize("form", ["naive", "fsql"])
@pytest.mark.parametrize("schema", [STAR, SNOWFLAKE], ids=lambda schema: schema.name)
def differential_sql_has_the_sums_over_the_join(schema: Schema, form: str, deletes: float, tmp_path: Path) -> None:
    stream = stream_of(Dataset(schema, 1, deletes=deletes, order="shuffled"), form, tmp_path)
    expected = of_join(schema, stream)
    assert expected[0, 0] > 100
    answer = LocalFinal().run(stream, Watch())
    assert answer is not None
    assert verdict(of_answer(schema.features, answer), expected) == "equal"
    connection = duckdb.connect()
    for name, table in stream.tables.items():
        connection.register("rows", table)
        there = f"WHERE {id_of(name)} NOT IN (SELECT {id_of(name)} FROM rows WHERE {MULT} < 0)" if deletes else ""
        connection.execute(f"CREATE TABLE {name} AS FROM rows {there}")
    text = stream.query.for_duckdb
    assert verdict(of_answer(schema.features, connection.sql(text).to_arrow_table()), expected) == "equal"


@pytest.mark.long
def differential_compiled_batches_of_many_rows_of_which_many_find_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sparse(scale: float, share: float, random: np.random.Generator) -> data.Tables:
        return {
            relation: {column: random.integers(0, 25 if column in "abc" else 999, 600) for column in columns}
            for relation, columns in SNOWFLAKE.columns.items()
        }

    monkeypatch.setitem(data.GENERATORS, "snowflake", sparse)
    stream = stream_of(Dataset(SNOWFLAKE, 1, deletes=0.5, order="shuffled"), "cofactor", tmp_path, batch_rows=500)
    answer = LocalCompiled().run(stream, Watch())
    assert answer is not None
    assert verdict(of_answer(SNOWFLAKE.features, answer), of_join(SNOWFLAKE, stream)) == "equal"


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.parametrize("deletes", [0.0, 0.5])
def differential_triggers_in_cpp_have_the_sums_over_the_join(deletes: float, tmp_path: Path) -> None:
    stream = stream_of(Dataset(STAR, 3, deletes=deletes), "fsql", tmp_path)
    done = native.run(STAR, stream, 2, ("-O0",))
    assert done.seconds.shape == (2, stream.batches)
    assert done.features == ("k", "y", "z", "x", "r")
    assert verdict(moments(done.features, done.root, STAR.features), of_join(STAR, stream)) == "equal"


def test_triggers_in_cpp_are_for_stars() -> None:
    assert native.relations_of(SCHEMAS["housing"])[-1] == "house"
    for schema in (SNOWFLAKE, SCHEMAS["retailer"], SCHEMAS["ssb"], SCHEMAS["tpch"]):
        with pytest.raises(native.NotAStar):
            native.relations_of(schema)


def test_a_wrong_sum_and_a_wrong_count_are_told() -> None:
    expected = np.array([[2.0, 3.0], [3.0, 5.0]])
    assert verdict(expected, expected) == "equal"
    assert verdict(expected + np.array([[0, 1e-8], [0, 0]]), expected) == "off by 3e-09"
    assert verdict(expected + np.array([[1, 0], [0, 0]]), expected) == "count 3, not 2"
    assert "off" in verdict(np.array([[2.0, np.nan], [3.0, 5.0]]), expected)


@pytest.mark.parametrize(
    "name, features", [("housing", 27), ("retailer", 43), ("ssb", 37), ("tpch", 37), ("triangle", 3)]
)
def test_schemas_have_as_many_variables_as_in_the_papers(name: str, features: int, tmp_path: Path) -> None:
    schema = SCHEMAS[name]
    assert len(schema.features) == len(schema.features_of(schema.tree)) == features
    assert ", ".join(schema.features) in cofactor(schema)
    assert of_join(schema, stream_of(Dataset(schema, 0.02, 0.02), "naive", tmp_path))[0, 0] > 0


def test_housing_4_has_14_rows_and_64_of_the_join_a_postcode(tmp_path: Path) -> None:
    stream = stream_of(Dataset(SCHEMAS["housing"], 4, 0.01), "fsql", tmp_path, 100)
    assert stream.replay.total == 250 * 14
    assert of_join(SCHEMAS["housing"], stream)[0, 0] == 250 * 64
    assert settled(SCHEMAS["housing"], stream) == 15
    for order in ("shuffled", "sorted"):
        stream = stream_of(Dataset(SCHEMAS["housing"], 4, 0.01, order), "fsql", tmp_path, 100)
        assert settled(SCHEMAS["housing"], stream) == 0


def test_growth_is_of_batches_with_one_mix_of_relations(tmp_path: Path) -> None:
    stream = stream_of(Dataset(SCHEMAS["housing"], 4, 0.01), "fsql", tmp_path, 100)
    mixes = [sum(end > start for start, end in stream.replay.ranges(b).values()) for b in range(stream.batches)]
    assert len({*mixes[15:]}) > 1, "streams end one after another"
    flat = {batch: 1.0 / of for batch, of in enumerate(mixes)}
    assert growth(stream, [flat], 15) == pytest.approx(1)
    growing = {batch: seconds * (1 + batch / stream.batches) for batch, seconds in flat.items()}
    assert 1.1 < (growth(stream, [growing, growing, flat | {20: 9.0}], 15) or 0) < 35 / 25
    assert growth(stream, [{0: 1.0}], 15) is None


@pytest.mark.parametrize("order", ORDERS)
def test_streams_are_made_again_and_delete_what_came_before(order: str) -> None:
    made, again, other = (Dataset(STAR, 5, order=order, deletes=0.4, seed=seed).tables() for seed in (1, 1, 2))
    assert made == again != other
    for name, table in made.items():
        there = dict[int, dict[str, object]]()
        for row in table.to_pylist():
            if row.pop(CHANGES) == "+":
                assert there.setdefault(row[id_of(name)], row) is row
            else:
                assert there.pop(row[id_of(name)]) == row
        assert len(there) == 120


def test_rounds_bring_each_key_before_any_comes_again() -> None:
    keys = Dataset(STAR, 5).tables()["r"]["k"].to_pylist()
    assert all(sorted(keys[at : at + 4]) == [1, 2, 3, 4] for at in range(0, 40, 4))
