"""Regressions by gradient descent go on from the coefficients that their state keeps."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from squallpy.catalog.relation import MULT
from squallpy.runtime.auxiliary import model_solvers
from squallpy.runtime.models.cofactor_matrix import CofactorMatrix, Reals
from squallpy.runtime.models.least_squares import LinearRegression, gradient_descent
from squallpy.testing.engines import PartitionedEngine

SCRIPT = """
CREATE STREAM r (g VARCHAR, x DOUBLE, y DOUBLE) USING csv OPTIONS (path 'r', op 'op');
SELECT * FROM ols(TABLE(SELECT g, x, y FROM r) PARTITION BY g, 'y', solver => 'bgd');
"""
BATCHES = ([("a", 2.0, 4.0, 1)], [("a", 1.0, 4.0, 1), ("b", 4.0, 2.0, 1)], [("a", 2.0, 4.0, -1)], [("a", 1.0, 4.0, -1)])


def test_descent_begins_with_the_coefficients_of_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts, found = list[list[float]](), list[list[list[float]]]()

    def noted(cofactors: CofactorMatrix, model: LinearRegression, start: Reals | None) -> Reals | None:
        starts.append([] if start is None else np.round(start, 9).tolist())
        return gradient_descent(cofactors, model, start)

    monkeypatch.setattr(model_solvers, "gradient_descent", noted)
    engine = PartitionedEngine(1)
    engine.start(SCRIPT, tmp_path, {})
    for batch in (*BATCHES, BATCHES[0]):
        g, x, y, signs = zip(*batch, strict=True)
        engine.push({"r": pa.table({"g": g, "x": x, "y": y, MULT: signs})})
        found.append(sorted(starts))
        starts.clear()
    assert found == [[[]], [[], [2.0]], [[2.4]], [[4.0]], [[]]]
