"""Variances of doubles are those of the numbers themselves, however far from zero they are, also after deletes."""

from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.compare_rows import rows_of
from squallpy.testing.example_runs import PrintedExample

SCRIPT = """
CREATE STREAM r (k INT, x DOUBLE, y DOUBLE) USING csv OPTIONS (path '{path}', op 'op', header 'true');
SELECT k, VAR_POP(x), COVAR_SAMP(x, y), CORR(x, y), REGR_SLOPE(y, x) FROM r GROUP BY k;
"""
SPREADS = {"units around 1e9": (1e9, 3.0), "thousandths around 1e6": (1e6, 1e-3), "around 1e-9": (1e-9, 1e-14)}
GROUPS, MOST = 40, 9


def spread(xs: list[float], ys: list[float]) -> Fraction:
    """Σxy − Σx·Σy/n, of the numbers as they are."""
    pairs, zero = [(Fraction(x), Fraction(y)) for x, y in zip(xs, ys, strict=True)], Fraction(0)
    first, second = sum((x for x, _ in pairs), zero), sum((y for _, y in pairs), zero)
    return sum((x * y for x, y in pairs), zero) - first * second / len(pairs)


@pytest.mark.parametrize(("mean", "width"), SPREADS.values(), ids=SPREADS)
def fault_far_from_zero(mean: float, width: float, tmp_path: Path) -> None:
    random, lines, kept = Random(5), ["k,x,y,op"], dict[int, tuple[list[float], list[float]]]()
    for k in range(GROUPS):
        rows = [(random.gauss(mean, width), random.gauss(-mean, width)) for _ in range(random.randint(2, MOST))]
        gone = [(random.gauss(mean * 1e3, width), mean), (random.gauss(mean, width), mean * 1e3)]
        lines += [f"{k},{x!r},{y!r},{op}" for op in "+-" for x, y in (gone if op == "-" else rows + gone)]
        kept[k] = [x for x, _ in rows], [y for _, y in rows]
    path = tmp_path / "r.csv"
    path.write_text("\n".join(lines) + "\n")
    printed = PrintedExample()
    ScriptSession(Path("q.sql"), text=SCRIPT.format(path=path)).run(RunOptions(backend="local", batch_rows=50), printed)
    for k, variance, covariance, correlation, slope in rows_of(printed.table):
        xs, ys = kept[k]
        mine, other, both = spread(xs, xs), spread(ys, ys), spread(xs, ys)
        assert variance == pytest.approx(float(mine / len(xs)), rel=1e-12)
        assert covariance == pytest.approx(float(both / (len(xs) - 1)), rel=1e-12, abs=float(mine) * 1e-12)
        assert correlation**2 == pytest.approx(float(both * both / mine / other), rel=1e-11, abs=1e-13)
        assert slope == pytest.approx(float(both / mine), rel=1e-11, abs=1e-13)
