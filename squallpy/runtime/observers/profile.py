"""Profile of batches: a flame graph of stages, and a table of their medians and 95th percentiles.

    {("job",): 0.06, ("job", "stage 1"): 0.01, ("publish",): 0.002}     of each batch, inner spans included

The file has the format of speedscope (https://www.speedscope.app), which several viewers open: a stack for each span,
weighted with its own time, without inner spans.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any

from squallpy.base.timing import Seconds, Way
from squallpy.runtime.sinks.output_file import check_writable, write_whole

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_SHOWN = 3  # levels of the table
_LEAST = 0.005  # fraction of the time below which a span has no line


class Profile:
    """Times of batches; the first one counts in the file only, for it also warms up."""

    def __init__(self, path: Path) -> None:
        check_writable(path)
        self._path, self._batches = path, 0
        self._sum: Seconds = {}
        self._slowest: tuple[float, int, Seconds] = (-1.0, 0, {})
        self._series: dict[Way, list[float]] = {}
        self._totals: list[float] = []

    def add(self, batch: int, seconds: Seconds) -> None:
        """Add the spans of a batch."""
        for way, value in seconds.items():
            self._sum[way] = self._sum.get(way, 0.0) + value
        total = sum(value for way, value in seconds.items() if len(way) == 1)
        if self._batches:
            self._slowest = max(self._slowest, (total, batch, seconds), key=lambda known: known[0])
            for way, value in seconds.items():
                if len(way) <= _SHOWN:
                    series = self._series.setdefault(way, [])
                    series += [0.0] * (len(self._totals) - len(series)) + [value]
            self._totals.append(total)
        self._batches += 1

    def write(self) -> None:
        """Write the file."""
        flames = [(f"{self._batches:,} batches", self._sum)]
        if self._totals:
            flames.append((f"the slowest after the first, {self._slowest[1]}", self._slowest[2]))
        names = sorted({name for _, seconds in flames for way in seconds for name in way})
        frames = {name: number for number, name in enumerate(names)}
        message = {
            "$schema": _SCHEMA,
            "exporter": "squall run --profile",
            "shared": {"frames": [{"name": name} for name in names]},
            "profiles": [_flame(name, seconds, frames) for name, seconds in flames],
        }
        write_whole(self._path, lambda sink: sink.write(json.dumps(message).encode()))

    def table(self) -> list[str]:
        """Write lines for people: a span, its median and 95th percentile over the batches, and its share of the
        time."""
        whole = sum(self._totals)
        if not whole:
            return []
        rows = [("a batch after the first", self._totals)]
        rows += [
            ("  " * len(way) + way[-1], self._series[way])
            for way in _in_order(self._series)
            if sum(self._series[way]) >= _LEAST * whole
        ]
        width = max(len(name) for name, _ in rows)
        lines = [f"{'':<{width}}  {'median':>9}  {'p95':>9}  {'share':>5}"]
        for name, series in rows:
            padded = sorted(series + [0.0] * (len(self._totals) - len(series)))
            late = padded[-(-95 * len(padded) // 100) - 1]
            share = sum(series) / whole
            lines.append(f"{name:<{width}}  {_millis(median(padded))}  {_millis(late)}  {share:>4.0%}")
        return lines


def _flame(name: str, seconds: Seconds, frames: dict[str, int]) -> dict[str, Any]:
    """Make a profile of speedscope: stacks, and the seconds that are in each and in none below it."""
    below: Seconds = {}
    for way, value in seconds.items():
        below[way[:-1]] = below.get(way[:-1], 0.0) + value
    own = {way: max(0.0, seconds[way] - below.get(way, 0.0)) for way in _in_order(seconds)}
    return {
        "type": "sampled", "name": name, "unit": "seconds", "startValue": 0, "endValue": sum(own.values()),
        "samples": [[frames[name] for name in way] for way in own], "weights": list(own.values()),
    }  # fmt: skip


def _in_order(seconds: dict[Way, Any]) -> list[Way]:
    """Order each span after its parent, otherwise by first occurrence."""
    met = {way: number for number, way in enumerate(seconds)}
    return sorted(seconds, key=lambda way: [met.get(way[: n + 1], 0) for n in range(len(way))])


def _millis(seconds: float) -> str:
    return f"{1000 * seconds:>6.1f} ms"
