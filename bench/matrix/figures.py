"""Figures of the papers that are not about one program's speed: `python -m bench.matrix.figures`.

    --figures LIST    models, powers, search, layouts, memory     [default: all]
    --n N             rows of the matrices of the first two       [default: 1000]
    --hops N          rows of the graphs of layouts               [default: 2000]
    --sizes LIST      rows of the matrices whose memory is shown  [default: 500,1000,2000]
    --steps N         the most steps of programs that are compiled [default: 128]
    --rounds N        of everything, in turns                     [default: 5]
    --out FILE        the tables; those of others stay            [default: bench/results/matrix-figures.md]

*models*: LINVIEW's Figure 3a, A¹⁶ in each iterative model, by triggers and evaluated anew. *powers*: its Figure 3c, Aᵏ
by k. *search*: the thesis' Table 5.2, what the compiler tries. *layouts*: its Figure 5.16a-d, reachability in 4 hops on
bits, doubles and compressed columns, and updates of bits and doubles, symmetric or not. *memory*: its Figure 5.18b,
what A¹⁶ keeps. Times are medians of turns in one process, of compilation processor time.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bench.matrix import inputs, machine, paper
from squallpy.base.recursion import run_deep
from squallpy.base.semirings import ARITHMETIC, BOOLEAN
from squallpy.maintain.matrix.compile_triggers import CompiledMatrices, Options, compile_program
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.parser import read_program
from squallpy.runtime.kernels.matrix import boolean
from squallpy.runtime.matrix.maintained_program import MaintainedProgram
from squallpy.runtime.matrix.memory_check import bytes_available
from squallpy.runtime.matrix.stored_views import store_view

Array = npt.NDArray[Any]
Lines = Iterator[str]
HOPS = 4
DENSITIES = (0.002, 0.01, 0.1)
MODELS = ("linear", "skip-2", "skip-4", "skip-8", "exponential")


def compiled(
    text: str, shapes: Mapping[str, tuple[str, str | int]], sizes: Mapping[str, int], **options: str
) -> CompiledMatrices:
    """A program with triggers for its first input."""
    made = [MatrixInput(Name(name, Size.of(rows), Size.of(cols))) for name, (rows, cols) in shapes.items()]
    program = read_program(text, made)
    return run_deep(lambda: compile_program(program, [next(iter(shapes))], sizes, Options(**options)))


def powers_program(k: int, n: int, strategy: str, model: str = "auto") -> CompiledMatrices:
    return compiled(f"P := A ^ {k}", {"A": ("n", "n")}, {"n": n}, strategy=strategy, model=model)


def _power_times(k: int, n: int, rounds: int, model: str = "auto") -> tuple[dict[str, machine.Times], int, int]:
    """Seconds of an update by triggers and anew, the bytes of views, and the rank of the last one's change."""
    random = np.random.default_rng(0)
    A = inputs.contraction(n, random)
    live = {
        strategy: MaintainedProgram(powers_program(k, n, strategy, model).maintained, {"A": A.copy()}, strategy)
        for strategy in ("incr", "reeval")
    }

    def update(program: MaintainedProgram) -> None:
        u, v = inputs.row_update(n, n, random)
        program.update("A", u, 0.05 * v.T)

    times = machine.interleaved({name: partial(update, program) for name, program in live.items()}, rounds)
    return times, live["incr"].views.nbytes, live["reeval"].views.nbytes


def models(options: argparse.Namespace) -> Lines:
    yield f"## LINVIEW Figure 3a: A¹⁶ by model, n = {options.n:,}, ms"
    yield ""
    yield "| model | INCR | REEVAL | times | views of INCR, MB |"
    yield "|---|--:|--:|--:|--:|"
    for model in MODELS:
        times, stored, _ = _power_times(16, options.n, options.rounds, model)
        yield f"| {model} | {_compare(times)} | {stored / 1e6:.0f} |"


def powers(options: argparse.Namespace) -> Lines:
    yield f"## LINVIEW Figure 3c: A^k by k, n = {options.n:,}, ms"
    yield ""
    yield "| k | INCR | REEVAL | times |"
    yield "|--:|--:|--:|--:|"
    for k in (2, 4, 8, 16, 32, 64, 128, 256):
        yield f"| {k} | {_compare(_power_times(k, options.n, options.rounds)[0])} |"


def _compare(times: Mapping[str, machine.Times]) -> str:
    incr, anew = times["incr"].middle, times["reeval"].middle
    return f"{incr * 1e3:.3g} | {anew * 1e3:.3g} | {anew / incr:.3g}"


def search(options: argparse.Namespace) -> Lines:
    yield "## Thesis Table 5.2: compilation"
    yield ""
    yield "| program | steps | seconds | models | forms | rules | seen before | the thesis': seconds | rules |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for name, steps, seconds, rules, _, _ in paper.SEARCHES:
        if steps and steps > options.steps:
            continue
        shapes: dict[str, tuple[str, str | int]] = {"X": ("m", "n"), "Y": ("m", 1)}
        if name == "ols":
            text = "beta := inv(X' * X) * X' * Y"
        else:
            text = f"T := iterate[{steps}](T0)(t => t - X' * (X * t - Y))"
            shapes = {"X": ("m", "n"), "Y": ("m", "n"), "T0": ("n", "n")}
        start = process_time()
        report = compiled(text, shapes, {"m": 2000, "n": 1000}).report
        took = process_time() - start
        ways = sum(len(found) for _, found in report.iterations)
        counted = [
            sum(getattr(result, count) for _, result in report.searches)
            for count in ("forms", "applications", "revisits")
        ]
        told = " | ".join(f"{count:,}" for count in (ways, *counted))
        yield f"| {name} | {steps or ''} | {took:.2f} | {told} | {seconds:g} | {rules:,} |"


def layouts(options: argparse.Namespace) -> Lines:
    n, random = options.hops, np.random.default_rng(0)
    yield f"## Thesis Figure 5.16: layouts, n = {n:,}"
    yield ""
    yield f"Reachability in {HOPS} hops evaluated, ms, and MB of the graph:"
    yield ""
    yield "| density | bits | bits, row by column | doubles | compressed columns | MB: bits | doubles | columns |"
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|"
    for density in DENSITIES:
        graph = inputs.random_graph(n, density, random)
        bits, doubles = boolean.pack(graph), graph.astype(float)
        columns = sparse.csc_matrix(doubles)
        ways: dict[str, Callable[[], Any]] = {
            "bits": lambda b=bits: _hops(b, boolean.pack(np.eye(n, dtype=bool)), boolean.product, np.bitwise_or),  # type: ignore[misc]
            "loops": lambda b=bits: _thesis_hops(b),  # type: ignore[misc]
            "doubles": lambda d=doubles: _hops(d, np.eye(n), _any_product, np.maximum),  # type: ignore[misc]
            "columns": lambda c=columns: _hops(c, sparse.identity(n, format="csc"), _any_columns, _any_sum),  # type: ignore[misc]
        }
        wanted = boolean.unpack(ways["bits"](), n)
        assert (wanted == (ways["doubles"]() > 0)).all()
        times = machine.interleaved(ways, options.rounds, budget=10.0)
        held = bits.nbytes, doubles.nbytes, columns.data.nbytes + columns.indices.nbytes + columns.indptr.nbytes
        cells = [f"{times[way].middle * 1e3:.3g}" for way in ways] + [f"{size / 1e6:.3g}" for size in held]
        yield f"| {density:g} | {' | '.join(cells)} |"
    yield ""
    yield "A symmetric view read by two vectors and changed by rank 2, ms, and MB:"
    yield ""
    yield "| | bits | symmetric bits | doubles | symmetric doubles |"
    yield "|---|--:|--:|--:|--:|"
    times, sizes = _view_times(n, options.rounds, random)
    yield f"| ms | {' | '.join(f'{times[name].middle * 1e3:.3g}' for name in times)} |"
    yield f"| MB | {' | '.join(f'{size / 1e6:.3g}' for size in sizes)} |"


def _hops(graph: Any, one: Any, multiply: Callable[[Any, Any], Any], add: Callable[[Any, Any], Any]) -> Any:
    reached = one
    for _ in range(HOPS):
        reached = add(multiply(graph, reached), one)
    return reached


def _thesis_hops(bits: Array) -> Array:
    from bench.matrix.baselines import reachability

    return reachability(bits, HOPS)


def _any_product(left: Array, right: Array) -> Array:
    return np.asarray(left @ right > 0, float)


def _any_columns(left: Any, right: Any) -> Any:
    found = left @ right
    found.data[:] = 1.0
    return found


def _any_sum(left: Any, right: Any) -> Any:
    return left.maximum(right)


def _view_times(n: int, rounds: int, random: np.random.Generator) -> tuple[dict[str, machine.Times], list[int]]:
    """Times of the same visit to four layouts of a symmetric matrix."""
    graph = inputs.random_graph(n, 0.1, random)
    x, y = random.random((n, 2)) < 0.1, random.random((n, 2)) < 0.01
    u, v = np.hstack([y, x]), np.vstack([x.T, y.T])
    views = {
        "bits": store_view(graph, BOOLEAN),
        "symmetric bits": store_view(graph, BOOLEAN, symmetrical=True),
        "doubles": store_view(graph.astype(float), ARITHMETIC),
        "symmetric doubles": store_view(graph.astype(float), ARITHMETIC, symmetrical=True),
    }

    def visit(name: str) -> None:
        kind = bool if "bits" in name else float
        views[name].pass_over(u.astype(kind), v.astype(kind), [x.astype(kind)], [x.astype(kind)])

    times = machine.interleaved({name: partial(visit, name) for name in views}, 3 * rounds)
    return times, [view.nbytes for view in views.values()]


def memory(options: argparse.Namespace) -> Lines:
    yield "## Thesis Figure 5.18: A¹⁶ by n"
    yield ""
    yield "| n | INCR, ms | REEVAL, ms | times | INCR, MB | REEVAL, MB | times | times less ÷ times more |"
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|"
    for n in options.sizes:
        times, incr, reeval = _power_times(16, n, options.rounds)
        gain = times["reeval"].middle / times["incr"].middle / (incr / reeval)
        held = f"{incr / 1e6:.3g} | {reeval / 1e6:.3g} | {incr / reeval:.2f}"
        yield f"| {n:,} | {_compare(times)} | {held} | {gain:.3g} |"
    views = len(powers_program(16, 1000, "incr").maintained.stored)
    free = bytes_available()
    yield ""
    yield f"INCR keeps {views} matrices, {8 * views} n² bytes, REEVAL A and A¹⁶, 16 n²: {views / 2:g} times at any n."
    most, more = (int((free / each) ** 0.5) // 100 * 100 for each in (8 * views, 16))
    yield f"In the {free / 2**30:.1f} GB that are free here n may be {most:,}, without triggers {more:,}."
    yield f"n = 100,000 takes {80 * views:,} GB, without triggers 160 GB; blocks that are also read by columns, twice."


FIGURES: Mapping[str, Callable[[argparse.Namespace], Lines]] = {
    "models": models, "powers": powers, "search": search, "layouts": layouts, "memory": memory,
}  # fmt: skip
HEAD = "# Figures of matrix programs\n\nMade by `python -m bench.matrix.figures`; do not edit.\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.matrix.figures", description=__doc__.splitlines()[0])
    parser.add_argument("--figures", type=lambda text: text.split(","), default=list(FIGURES))
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--hops", type=int, default=2000)
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[500, 1000, 2000])
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "results" / "matrix-figures.md")
    options = parser.parse_args()
    tables = _tables(options.out)
    for name in options.figures:
        lines = list[str]()
        for line in FIGURES[name](options):
            print(line, flush=True)
            lines.append(line)
        on = "; ".join(machine.describe().splitlines())
        lines[1:1] = ["", f"{on}."]
        print(f"\n{on}\n", flush=True)
        tables[lines[0].split(":")[0]] = "\n".join(lines) + "\n"
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("\n".join([HEAD, *tables.values()]))


def _tables(path: Path) -> dict[str, str]:
    """The tables of a file by what their headings begin with."""
    text = path.read_text() if path.exists() else ""
    found = ["## " + part.strip() + "\n" for part in text.split("\n## ")[1:]]
    return {part.split(":")[0]: part for part in found}


if __name__ == "__main__":
    main()
