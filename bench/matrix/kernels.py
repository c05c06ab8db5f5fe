"""Kernels of matrices against the memory's bandwidth, and against re-evaluation: `python -m bench.matrix.kernels`.

    --sizes LIST     [default: 1000,2000,4000]
    --rounds N       of everything, in turns            [default: 7]
    --programs LIST  of those below; none: passes only  [default: all]

Passes: milliseconds, GB/s of the cells that a pass must move, and their share of the bandwidth measured in turns with
them. Programs: a trigger written by hand on the kernels, for one update, against two ways to evaluate the program again
(`baselines.py`): ratios of minima, and of medians, in one process, in turns.
"""

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from bench.matrix import baselines, inputs, machine, paper
from bench.matrix.by_hand import Ols, Powers, Reachability, ShortestPaths
from squallpy.runtime.kernels.matrix import boolean, dense, symmetric, tropical
from squallpy.runtime.kernels.matrix.sweeps import columns_of, rows_of

PASSES = [(1, 1, 1), (2, 2, 2), (4, 4, 4), (8, 8, 8), (16, 0, 0), (64, 0, 0), (0, 1, 0), (0, 0, 1)]
BUDGET = 20.0  # seconds for one thing that is measured, if it was measured twice
Action = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.matrix.kernels", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[1000, 2000, 4000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--programs", type=lambda text: text.split(",") if text else [], default=list(PROGRAMS))
    options = parser.parse_args()
    print(machine.describe(), end="\n\n")
    for n in options.sizes:
        report_passes(n, options.rounds)
    print("| program | n | trigger, ms | paper-form, ms | strong, ms | times, minima | times, medians | the paper's |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for program in options.programs:
        for n in options.sizes:
            report_program(program, n, options.rounds)


def report_passes(n: int, rounds: int) -> None:
    actions: dict[str, Action] = {"memory": machine.memory(), "products": machine.products()}
    actions |= {str(shape): action for shape, action, _ in passes(n)}
    times = machine.interleaved(actions, rounds)
    bandwidth = machine.MEMORY_BYTES / times["memory"].least
    print(f"n = {n}: memory {bandwidth / 1e9:.0f} GB/s, products {16 / times['products'].least:.0f} GF/s", end="\n\n")
    print("| pass | update, M·X, M'·Y | ms | GB/s | of the bandwidth | GF/s |\n|---|---|--:|--:|--:|--:|")
    for shape, _, moved in passes(n):
        least, (kind, *widths) = times[str(shape)].least, shape
        cells = f"{least * 1e3:.2f} | {moved / least / 1e9:.0f} | {moved / least / bandwidth:.0%}"
        print(f"| {kind} | {widths} | {cells} | {2 * n * n * sum(widths) / least / 1e9:.0f} |", flush=True)
    print()


def passes(n: int) -> Iterator[tuple[tuple[str, int, int, int], Action, int]]:
    """(kind, k, p, q), the pass, and the bytes that it must move."""
    random = np.random.default_rng(0)
    M = rows_of(n, n, float)
    M[:] = random.normal(size=(n, n))
    for k, p, q in PASSES:
        U, V, X, Y = (columns_of(n, width, float) for width in (k, k, p, q))
        for factor in (U, V, X, Y):
            factor[:] = 1e-6
        moved = (16 if k else 8) * n * n
        yield ("dense", k, p, q), lambda f=(U, V, X, Y): dense.pass_over(M, *f), moved  # type: ignore[misc]
        yield ("min-plus", k, p, q), lambda f=(U, V, X, Y): tropical.pass_over(M, *f), 8 * n * n  # type: ignore[misc]
        if p == q:
            yield ("symmetric", k, p, q), lambda f=(U, V, X): symmetric.pass_over(M, *f), moved // 2  # type: ignore[misc]


Compared = tuple[Action, Action, Action]  # a trigger, and re-evaluation: paper-form, strong


def powers(n: int, random: np.random.Generator) -> Compared:
    live = Powers(inputs.contraction(n, random), 16)
    again = lambda: baselines.powers(live.views[0], 16)  # noqa: E731
    return lambda: live.update(*inputs.row_update(n, n, random)), again, again


def _ols(n: int, m: int, random: np.random.Generator) -> Compared:
    X, Y = inputs.observations(n, m, random), random.normal(size=(n, 1))
    live = Ols(X, Y)

    def update() -> None:
        U, V = inputs.row_update(n, m, random)
        live.update(U, 0.01 * V)

    return update, lambda: baselines.ols(X, Y), lambda: baselines.ols_strong(X, Y)


def reachability(n: int, random: np.random.Generator) -> Compared:
    graph = inputs.scale_free_graph(n, 0.01, random)
    live = Reachability(boolean.pack(graph), 4)
    return (
        lambda: live.update(*inputs.edge(n, random)),
        lambda: baselines.reachability(live.G, 4),
        lambda: baselines.reachability_strong(live.G, 4),
    )


def shortest_paths(n: int, random: np.random.Generator) -> Compared:
    live = ShortestPaths(inputs.lengths(inputs.random_graph(n, 0.05, random), random), 4)
    return (
        lambda: live.update(*inputs.edge(n, random), float(random.integers(1, 101))),
        lambda: baselines.shortest_paths(live.G, 4),
        lambda: baselines.shortest_paths_strong(live.G, 4),
    )


PROGRAMS: dict[str, Callable[[int, np.random.Generator], Compared]] = {
    "powers": powers,
    "ols square": lambda n, random: _ols(n, n, random),
    "ols": lambda n, random: _ols(n, n // 2, random),
    "reachability": reachability,
    "shortest paths": shortest_paths,
}


def report_program(program: str, n: int, rounds: int) -> None:
    trigger, *again = PROGRAMS[program](n, np.random.default_rng(0))
    actions = {"trigger": trigger, "paper": again[0]} | ({"strong": again[1]} if again[1] is not again[0] else {})
    times = machine.interleaved(actions, rounds, BUDGET)
    ms = [f"{times[name].least * 1e3:.3g}" if name in times else "" for name in ("trigger", "paper", "strong")]
    ours, others = times["trigger"], [times[name] for name in ("paper", "strong") if name in times]
    least = " / ".join(f"{other.least / ours.least:.0f}" for other in others)
    middle = " / ".join(f"{other.middle / ours.middle:.0f}" for other in others)
    known = paper.FIGURES.get(program)
    theirs = f"{known.least:g} – {known.most:g}" if known else ""
    print(f"| {program} | {n} | {' | '.join(ms)} | {least} | {middle} | {theirs} |", flush=True)


if __name__ == "__main__":
    main()
