"""The cost of a batch along the stream, and where re-evaluation stops being cheaper."""

from pathlib import Path

from bench.data.queries import STREAMING
from bench.measure.results import Result, Results

COLOURS = {"squallpy-local": "tab:red", "duckdb": "tab:blue", "polars": "tab:green"}


def in_process(results: Results) -> dict[tuple[float, str], dict[str, Result]]:
    """By scale and query/batch rows, the systems that share a process with their data."""
    out: dict[tuple[float, str], dict[str, Result]] = {}
    for (engine, scale, key), result in results.items():
        if engine in COLOURS and "curve" in result:
            out.setdefault((scale, key), {})[engine] = result
    return out


def crossings(results: Results) -> list[str]:
    """From which prefix on a batch of ours costs less than re-evaluating all."""
    out = ["| query | batch | scale | cheaper than DuckDB after | than Polars after |", "|---|--:|--:|--:|--:|"]
    panels = in_process(results)
    for scale, key in sorted(
        panels, key=lambda panel: (STREAMING.index(panel[1].split("/")[0]), int(panel[1].split("/")[1]))
    ):
        found = panels[scale, key]
        if "squallpy-local" in found:
            query, batch = key.split("/")
            cells = [crossing(found["squallpy-local"], found.get(peer)) for peer in ("duckdb", "polars")]
            out.append(f"| {query} | {int(batch):,} | {scale:g} | {' | '.join(cells)} |")
    return out


def crossing(ours: Result, peer: Result | None) -> str:
    """The tuples seen after which the peer's batches cost more than ours, to the end of the stream."""
    if peer is None:
        return ""
    import numpy as np

    def smooth(values: "np.ndarray") -> "np.ndarray":
        """Running medians, so that one slow batch decides nothing."""
        padded = np.pad(values, 4, mode="edge")
        middles: np.ndarray = np.median(np.lib.stride_tricks.sliding_window_view(padded, 9), axis=1)
        return middles

    (seen, cost), (at, own) = np.array(peer["curve"]).T, np.array(ours["curve"]).T
    cost, mine = smooth(cost), np.interp(seen, at, smooth(own))
    cheaper = np.flatnonzero(cost <= mine)
    if not len(cheaper):
        return "the first batch"
    return "never" if cheaper[-1] == len(seen) - 1 else f"{seen[cheaper[-1]]:,.0f} tuples"


def plot(results: Results, path: Path) -> bool:
    """A panel per query and batch size; False if there is nothing to draw."""
    panels = in_process(results)
    if not panels:
        return False
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    scale = max(s for s, _ in panels)
    keys = [key for s, key in panels if s == scale]
    queries = [q for q in STREAMING if any(key.startswith(f"{q}/") for key in keys)]
    batches = sorted({int(key.split("/")[1]) for key in keys})
    size = (4.2 * len(batches), 2.7 * len(queries))
    figure, axes = pyplot.subplots(
        len(queries), len(batches), figsize=size, squeeze=False, sharex="row", layout="constrained"
    )
    for axis, (query, batch) in zip(axes.flat, [(q, b) for q in queries for b in batches], strict=True):
        for engine, result in panels.get((scale, f"{query}/{batch}"), {}).items():
            seen, cost = zip(*result["curve"], strict=True)
            axis.plot(
                [n / 1e6 for n in seen], [s * 1e3 for s in cost], color=COLOURS[engine], label=engine, linewidth=1.2
            )
        axis.set(yscale="log", title=f"{query.upper()}, batches of {batch:,}")
        axis.grid(True, which="major", alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("tuples seen, millions")
    for axis in axes[:, 0]:
        axis.set_ylabel("ms per batch")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True
