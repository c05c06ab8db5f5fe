"""Matrix programs kept fresh, beside their re-evaluation: `python -m bench.matrix.run`, also `make bench-matrix`.

    --runs LIST        names of runs, see RUNS, by ;  lines of others stay       [default: all]
    --rounds N         triggers, and at most as many re-evaluations              [default: 15]
    --out FILE         the table                                                 [default: bench/results/matrix.md]

Each run updates one input again and again by what its row says (rank 1, unless it says more), through the compiled
program, UPDATES times one after the other; in turns with these the program is evaluated anew as the papers did
(*paper-form*) and as an expert would (*strong*), in the same process, from inputs that lie ready as each wants them.
Ratios are of medians. *Error* is the largest difference from evaluation by the baseline in the end, relative to the
largest entry.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.matrix import baselines, inputs, machine
from bench.matrix.paper import BATCHES, FIGURES, MEMORY, ZIPF, batch_ratios
from squallpy.base.semirings import ARITHMETIC, BOOLEAN, MIN_PLUS, Semiring
from squallpy.maintain.matrix.compile_triggers import CompiledMatrices, Options, compile_program
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.meta_information import NOTHING, Properties
from squallpy.maintain.matrix.parser import read_program
from squallpy.runtime.kernels.matrix import boolean
from squallpy.runtime.matrix.maintained_program import MaintainedProgram

Array = npt.NDArray[Any]
Change = tuple[Array, Array]
BUDGET = 15.0  # seconds of re-evaluation of one kind in a run
UPDATES = 4  # in a turn: the first finds the cache as re-evaluation has left it
TABLE = """# Matrix programs kept fresh

Made by `python -m bench.matrix.run`; do not edit. {machine}

Milliseconds, medians: an update through the compiled program, {updates} after each other, and re-evaluation as the
papers did it / as an expert would. *Anew*: how many of the updates were evaluated anew, by cost. *Views* in MB, and
how many times the inputs. *On*: the machine as its BLAS knows it, and how many processes were runnable over the minute
before: lines of other runs stay.

| run | n | update | paper-form | strong | times | times strong | the papers' | anew | views | compile | error | on |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
"""


@dataclass(frozen=True)
class Run:
    """A program, its inputs, what changes, and its baselines as functions of the inputs."""

    text: str
    ring: Semiring
    shapes: Mapping[str, tuple[str | int, str | int]]
    values: Callable[[int, np.random.Generator], dict[str, Array]]
    change: Callable[[dict[str, Array], np.random.Generator], Change]
    paper: Callable[[dict[str, Array]], Array]
    strong: Callable[[dict[str, Array]], Array] | None
    figure: str = ""
    known: Mapping[str, Properties] | None = None
    changing: str = ""
    given: Callable[[Array], Array] = lambda values: values
    """What baselines take of a matrix."""
    plain: Callable[[Array, int], Array] = lambda result, n: result
    """The values of what they make."""
    options: Options = field(default_factory=Options)

    @property
    def changed(self) -> str:
        return self.changing or next(iter(self.shapes))

    def compiled(self, sizes: Mapping[str, int]) -> CompiledMatrices:
        known = self.known or {}
        made = [
            MatrixInput(Name(name, Size.of(rows), Size.of(cols)), known.get(name, NOTHING))
            for name, (rows, cols) in self.shapes.items()
        ]
        return compile_program(read_program(self.text, made, self.ring), [self.changed], sizes, self.options)


def row(values: dict[str, Array], random: np.random.Generator) -> Change:
    """A row of the first input changes a little."""
    n, m = next(iter(values.values())).shape
    u, v = inputs.row_update(n, m, random)
    return u, 0.05 * v.T


def batch(zipf: float) -> Callable[[dict[str, Array], np.random.Generator], Change]:
    """n / 10 updates of rows."""

    def change(values: dict[str, Array], random: np.random.Generator) -> Change:
        n = len(values["A"])
        u, v = inputs.batch_of_rows(n, n // 10, zipf, random)
        return u, 0.01 * v.T

    return change


def edge(values: dict[str, Array], random: np.random.Generator) -> Change:
    """Two vertices become neighbours: rank 2, as it holds both ways."""
    G = values["G"]
    i, j = inputs.edge(len(G), random)
    zero, one = (False, True) if G.dtype == bool else (np.inf, 0.0)
    u, v = np.full((len(G), 2), zero, G.dtype), np.full((2, len(G)), zero, G.dtype)
    u[i, 0], u[j, 1] = one, one
    v[0, j] = v[1, i] = True if G.dtype == bool else float(random.integers(1, 101))
    return u, v


def powers(n: int, random: np.random.Generator) -> dict[str, Array]:
    return {"A": inputs.contraction(n, random)}


def regression(wide: float) -> Callable[[int, np.random.Generator], dict[str, Array]]:
    def values(n: int, random: np.random.Generator) -> dict[str, Array]:
        m = int(n / wide)
        return {"X": inputs.observations(n, m, random), "Y": random.normal(size=(n, 1))}

    return values


def descent(n: int, random: np.random.Generator) -> dict[str, Array]:
    X = inputs.observations(n, n, random) / 2
    return {"X": X, "Y": random.normal(size=(n, n)), "T0": np.zeros((n, n))}


def affine(p: int) -> Callable[[int, np.random.Generator], dict[str, Array]]:
    def values(n: int, random: np.random.Generator) -> dict[str, Array]:
        cols = p or n
        return {"A": inputs.contraction(n, random), "B": random.normal(size=(n, cols)), "T0": np.ones((n, cols))}

    return values


def _powers(change: Callable[[dict[str, Array], np.random.Generator], Change], **more: Any) -> Run:
    anew = lambda v: baselines.powers(v["A"], 16)  # noqa: E731
    return Run("P := A ^ 16", ARITHMETIC, {"A": ("n", "n")}, powers, change, anew, None, **more)


def _affine(p: int, **more: Any) -> Run:
    return Run(
        "T := iterate[16](T0)(t => A * t + B)", ARITHMETIC,
        {"A": ("n", "n"), "B": ("n", "p"), "T0": ("n", "p")}, affine(p), row,
        lambda v: baselines.affine_iteration(v["A"], v["B"], v["T0"], 16),
        lambda v: baselines.affine_iteration_strong(v["A"], v["B"], v["T0"], 16), "affine iteration", **more,
    )  # fmt: skip


def _ols(wide: float, figure: str) -> Run:
    return Run(
        "beta := inv(X' * X) * X' * Y", ARITHMETIC, {"X": ("m", "n"), "Y": ("m", 1)}, regression(wide), row,
        lambda v: baselines.ols(v["X"], v["Y"]), lambda v: baselines.ols_strong(v["X"], v["Y"]), figure,
    )  # fmt: skip


def _graph(ring: Semiring) -> Run:
    short = ring is MIN_PLUS

    def values(n: int, random: np.random.Generator) -> dict[str, Array]:
        graph = inputs.scale_free_graph(n, 0.01, random) if not short else inputs.random_graph(n, 0.05, random)
        return {"G": inputs.lengths(graph, random) if short else graph}

    name = "shortest paths" if short else "reachability"
    paper, strong = baselines.PAPER[name], baselines.STRONG[name]
    text = "R := iterate[4](eye(n))(acc => G * acc + eye(n))"
    packed: dict[str, Any] = {} if short else {"given": boolean.pack, "plain": boolean.unpack}
    return Run(
        text, ring, {"G": ("n", "n")}, values, edge, lambda v: paper(v["G"], 4), lambda v: strong(v["G"], 4), name,
        {"G": Properties(symmetric=True)}, **packed,
    )  # fmt: skip


RUNS: dict[str, tuple[Run, tuple[int, ...]]] = {
    "A^16": (_powers(row), (2000, 4000)),
    "sum of A^0 … A^15": (
        Run(
            "S := iterate[15](eye(n))(s => A * s + eye(n))", ARITHMETIC, {"A": ("n", "n")}, powers, row,
            lambda v: baselines.sums_of_powers(v["A"], 16), None,
        ),
        (2000,),
    ),
    "least squares, n = m": (_ols(1, "ols square"), (4000,)),
    "least squares, n = 2m": (_ols(2, "ols"), (4000,)),
    "gradient descent, 16 steps": (
        Run(
            "T := iterate[16](T0)(t => t - X' * (X * t - Y))", ARITHMETIC,
            {"X": ("m", "n"), "Y": ("m", "n"), "T0": ("n", "n")}, descent, row,
            lambda v: baselines.gradient_descent(v["X"], v["Y"], 16),
            lambda v: baselines.gradient_descent_strong(v["X"], v["Y"], 16), "gradient descent",
        ),
        (2000,),
    ),
    "T := A·T + B, p = 1": (_affine(1), (2000,)),
    "T := A·T + B, p = 1, INCR": (_affine(1, options=Options(strategy="incr")), (2000,)),
    "T := A·T + B, p = 1, HYBRID": (_affine(1, options=Options(strategy="hybrid")), (2000,)),
    "T := A·T + B, p = 50": (_affine(50), (2000,)),
    "T := A·T + B, p = n": (_affine(0), (2000,)),
    "T := A·T + B, p = n, INCR": (_affine(0, options=Options(strategy="incr")), (2000,)),
    "reachability, 4 hops": (_graph(BOOLEAN), (4000,)),
    "shortest paths, 4 hops": (_graph(MIN_PLUS), (2000,)),
}  # fmt: skip
RUNS |= {f"A^16, n / 10 rows, Zipf {zipf:g}": (_powers(batch(zipf)), (2000,)) for zipf in ZIPF}


def measured(name: str, run: Run, n: int, rounds: int) -> str:
    """A line of the table."""
    random, on = np.random.default_rng(0), machine.short()
    values = run.values(n, random)
    sizes = {
        symbol: extent
        for key, shape in run.shapes.items()
        for symbol, extent in zip(shape, values[key].shape, strict=True)
        if isinstance(symbol, str)
    }
    start = perf_counter()
    compiled = run.compiled(sizes)
    compiling = perf_counter() - start
    live = MaintainedProgram(compiled.maintained, values)
    (output,) = compiled.maintained.program.outputs

    def fresh() -> dict[str, Array]:
        return {key: run.given(live.read(key)) for key in values}

    anew = {"paper": run.paper} | ({"strong": run.strong} if run.strong else {})
    times: dict[str, list[float]] = {key: [] for key in ("trigger", *anew)}
    for turn in range(rounds):
        changes = [run.change(values, random) for _ in range(UPDATES)]
        times["trigger"] += [_seconds(lambda c=c: live.update(run.changed, *c)) for c in changes]  # type: ignore[misc]
        given = fresh()
        for key, action in anew.items():
            if turn < 2 or sum(times[key]) < BUDGET:
                times[key].append(_seconds(lambda a=action, g=given: a(g)))  # type: ignore[misc]
    middle = {key: float(np.median(of[1:] if len(of) > 2 else of)) for key, of in times.items()}
    wanted = np.asarray(run.plain(run.paper(fresh()), n), float)
    found = np.asarray(live.read(output), float)
    with np.errstate(invalid="ignore"):
        off = np.where(found == wanted, 0.0, np.abs(found - wanted)).max() / np.abs(wanted[np.isfinite(wanted)]).max()
    known = FIGURES.get(run.figure)
    theirs = f"{known.least:g} – {known.most:g}" if known else _batched(name)
    strong = middle.get("strong")
    held = sum(array.nbytes if array.dtype != bool else array.size / 8 for array in values.values())
    ms = [f"{middle[key] * 1e3:.3g}" if key in middle else "" for key in ("trigger", "paper", "strong")]
    ratios = [f"{of / middle['trigger']:.3g}" if of else "" for of in (middle["paper"], strong)]
    views = f"{live.views.nbytes / 1e6:.3g} ({live.views.nbytes / held:.1f} ×)"
    done = f"{live.counts.reevaluated}/{live.counts.updates}"
    cells = [name, f"{n:,}", *ms, *ratios, theirs, done, views, f"{compiling:.2f} s", f"{off:.0e}", on]
    return f"| {' | '.join(cells)} |"


def _batched(name: str) -> str:
    if "Zipf" not in name:
        return ""
    zipf = float(name.split()[-1])
    return " / ".join(f"{batch_ratios(engine)[zipf]:.2g}" for engine in BATCHES)


def _seconds(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.matrix.run", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", default=",".join(RUNS), type=lambda text: text.split(";") if ";" in text else [text])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "results" / "matrix.md")
    given = parser.parse_args()
    chosen = [
        name
        for name in RUNS
        if given.runs == [",".join(RUNS)]
        or any(part == name or (part not in RUNS and part in name) for part in given.runs)
    ]
    head = TABLE.format(updates=UPDATES, machine="; ".join(machine.describe().splitlines()))
    print(head, end="")
    lines = _lines(given.out)
    for name in chosen:
        run, extents = RUNS[name]
        for n in extents:
            lines[name, f"{n:,}"] = line = measured(name, run, n, given.rounds)
            print(line, flush=True)
    ordered = [lines[key] for name, (_, ns) in RUNS.items() for n in ns if (key := (name, f"{n:,}")) in lines]
    tail = f"The paper kept P, P², P⁴, P⁸, P¹⁶ in {MEMORY} times the memory of re-evaluation."
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(head + "\n".join((*ordered, "", tail, "")))


def _lines(path: Path) -> dict[tuple[str, str], str]:
    """The lines of a table by run and n."""
    lines = path.read_text().splitlines() if path.exists() else []
    cells = [(line, [cell.strip() for cell in line.split("|")]) for line in lines if line.startswith("| ")]
    return {(found[1], found[2]): line for line, found in cells}


if __name__ == "__main__":
    main()
