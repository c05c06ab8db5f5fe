"""Table functions over streaming DataFrames, against NumPy and against what they give of all rows at once."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import squallpy
from squallpy.api.live_view import LiveView
from squallpy.base.errors import SquallError

pytestmark = pytest.mark.spark
OBSERVATIONS, EDGES = "a DOUBLE, b BIGINT, y DOUBLE", "src INT, dst INT, weight DOUBLE"


class Folder:
    """A folder of csv files, as a streaming DataFrame."""

    def __init__(self, session: Any, path: Path, schema: str) -> None:
        self._path, self._number = path, 0
        self.all: list[tuple[float, ...]] = []
        path.mkdir()
        self.rows = session.readStream.option("pathGlobFilter", "*.csv").schema(schema).csv(str(path))

    def put(self, rows: list[tuple[float, ...]]) -> None:
        """Add a file, whole."""
        self._number += 1
        draft = self._path / f"{self._number}.draft"
        draft.write_text("".join(f"{','.join(map(str, row))}\n" for row in rows))
        draft.rename(draft.with_suffix(".csv"))
        self.all += rows


@pytest.fixture
def keep(cluster: Any) -> Iterator[Callable[..., LiveView]]:
    """`squallpy.fresh`, of which nothing is left running."""
    views = list[LiveView]()

    def start(*arguments: Any, **named: Any) -> LiveView:
        views.append(squallpy.fresh(*arguments, **named))
        return views[-1]

    yield start
    for view in views:
        view.stop()
        assert not view.is_active and view.query is None


def oracle_least_squares(cluster: Any, tmp_path: Path, keep: Callable[..., LiveView]) -> None:
    """… as of the rows so far, also after it was stopped and has gone on; its changes add up to them."""
    folder, random = Folder(cluster.session, tmp_path / "in", OBSERVATIONS), np.random.default_rng(1)
    found = dict[str, float]()

    def change(_: int, deletes: Any, inserts: Any) -> None:
        for row in deletes.to_pylist():
            assert found.pop(row["feature"]) == row["coefficient"]
        found.update({row["feature"]: row["coefficient"] for row in inserts.to_pylist()})

    for turn in range(2):
        options = {"intercept": True, "checkpoint": str(tmp_path / "kept"), "on_change": change}
        view = keep(folder.rows, "ols", "y", **options)
        for _ in range(2):
            folder.put(
                [(float(a), int(b), float(3 + 2 * a - b + 0.25 * e)) for a, b, e in random.integers(-9, 9, (9, 3))]
            )
            view.wait()
            x = np.array([(1.0, *row[:2]) for row in folder.all])
            wanted = np.linalg.lstsq(x, np.array([row[2] for row in folder.all]))[0]
            assert found == pytest.approx(dict(zip(("intercept", "a", "b"), wanted, strict=True)), rel=1e-9)
            if not turn:
                rows = {row["feature"]: row["coefficient"] for row in view.to_arrow().to_pylist()}
                assert (
                    rows == found == dict(view.to_pandas().itertuples(index=False)) == dict(view.to_spark().collect())
                )
                assert view.query is not None and view.query.isActive
        view.stop()


@pytest.mark.parametrize(
    ("function", "arguments"), [("shortest_paths", (3,)), ("reachability", (2,)), ("pagerank", ())]
)
def differential_graphs(
    cluster: Any, tmp_path: Path, keep: Callable[..., LiveView], function: str, arguments: tuple[Any, ...]
) -> None:
    """Kept fresh, a function gives what it gives once of all rows."""
    folder = Folder(cluster.session, tmp_path / "in", EDGES)
    view = keep(folder.rows, function, *arguments)
    folder.put([(0, 1, 2.0), (1, 2, 0.5), (2, 0, 1.0)])
    view.wait()
    folder.put([(0, 3, 4.0), (3, 4, 1.0), (5, 0, 3.0), (0, 1, 1.0)])
    view.wait()
    squallpy.register(cluster.session)
    cluster.session.createDataFrame(folder.all, EDGES).createOrReplaceTempView("all_edges")
    call = ", ".join(["TABLE(all_edges)", *map(str, arguments)])
    once = [tuple(row) for row in cluster.session.sql(f"SELECT * FROM {function}({call})").collect()]
    found = [tuple(row.values()) for row in view.to_arrow().to_pylist()]
    np.testing.assert_allclose(sorted(found), sorted(once), rtol=1e-9)


def test_rows_that_are_alike_count(cluster: Any, tmp_path: Path, keep: Callable[..., LiveView]) -> None:
    """… and a stream that ends with what is there now ends."""
    folder = Folder(cluster.session, tmp_path / "in", OBSERVATIONS)
    folder.put([(1, 2, 3), (1, 2, 3)])
    view = keep(folder.rows, "cofactor", trigger="available-now")
    view.wait()
    assert {"a": "a", "b": "", "value": 2.0} in view.to_arrow().to_pylist()
    view._thread.join(600)
    assert not view.is_active


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("olss", "y"), 'SQ2004 unknown function "olss", did you mean "ols"?'),
        (("ols", "z"), 'SQ2003 .*has no column "z" of numbers, known: a, b, y'),
        (("ols",), "SQ2003 .*ols has no label, write ols"),
        (("pagerank",), "SQ2005 .*an index of a matrix is an INT or BIGINT"),
    ],
)
def fault_calls(cluster: Any, tmp_path: Path, call: tuple[str, ...], told: str) -> None:
    with pytest.raises(SquallError, match=told):
        squallpy.fresh(Folder(cluster.session, tmp_path / "in", OBSERVATIONS).rows, *call)
    assert not cluster.session.streams.active


def fault_a_table_and_a_call_back_that_raises(cluster: Any, tmp_path: Path, keep: Callable[..., LiveView]) -> None:
    with pytest.raises(SquallError, match="SQ2005 fresh takes a streaming DataFrame, and this one does not stream, "):
        squallpy.fresh(cluster.session.range(3), "ols", "id")
    folder = Folder(cluster.session, tmp_path / "in", OBSERVATIONS)
    folder.put([(1, 2, 3)])

    def change(*_: Any) -> None:
        raise ConnectionError("nobody listens")

    view = keep(folder.rows, "cofactor", on_change=change)
    for read in (view.wait, view.to_arrow):
        with pytest.raises(ConnectionError, match="nobody listens"):
            read()


def fault_a_frame_of_spark_connect() -> None:
    with pytest.raises(SquallError, match="SQ3001 fresh over a DataFrame of Spark Connect is not supported, "):
        squallpy.fresh(Mock(), "ols", "y")


def test_the_example_of_the_manual(cluster: Any, tmp_path: Path) -> None:
    rows = [(float(n), float(n * n), 1.0 + n) for n in range(9)]
    cluster.session.createDataFrame(rows, "a DOUBLE, b DOUBLE, y DOUBLE").write.parquet(f"{tmp_path}/obs")
    page = (Path(squallpy.__file__).parents[1] / "docs" / "matrix.md").read_text(encoding="utf-8")
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "squallpy.fresh" in block)
    names = {"spark": cluster.session}
    exec(example.replace("obs/", f"{tmp_path}/obs/"), names)
    model = names["model"]
    found = dict(model.to_pandas().itertuples(index=False))
    assert found == pytest.approx({"intercept": 1.0, "a": 1.0, "b": 0.0}, abs=1e-9) and not model.is_active


def test_what_is_exported_is_imported_when_it_is_asked_for() -> None:
    program = (
        "import sys, squallpy; before = set(sys.modules); assert {'fresh', 'register'} <= set(dir(squallpy));"
        "assert not {'numpy', 'pyspark', 'pyarrow'} & before; squallpy.fresh; assert 'pyspark' in sys.modules;"
        "squallpy.nothing"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.stderr.endswith("AttributeError: module 'squallpy' has no attribute 'nothing'\n"), ran.stderr
