"""Families of metrics in Prometheus's text format, version 0.0.4.

lag = Family("squallpy_lag_rows", "gauge", "Rows that are there and were not read.")
lag.set(3, source="r")   →   # HELP squallpy_lag_rows Rows that are there and were not read.
                             # TYPE squallpy_lag_rows gauge
                             squallpy_lag_rows{source="r"} 3
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from squallpy.base.records import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Family:
    """A gauge or a counter by labels."""

    name: str
    kind: str
    help: str
    values: dict[Labels, float] = field(default_factory=dict)

    def set(self, value: float, **labels: object) -> None:
        """Set the value of a gauge."""
        self.values[_labels(labels)] = value

    def add(self, value: float, **labels: object) -> None:
        """Add to a counter."""
        key = _labels(labels)
        self.values[key] = self.values.get(key, 0) + value

    def lines(self) -> Iterator[str]:
        """Write the samples."""
        for labels, value in self.values.items():
            yield _sample(self.name, labels, value)


@dataclass(slots=True)
class Histogram:
    """Counts of observations up to each of some bounds, by labels."""

    name: str
    help: str
    bounds: Sequence[float]
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=dict)
    kind: str = "histogram"

    def observe(self, values: Sequence[float], **labels: object) -> None:
        """Count observations."""
        key = _labels(labels)
        counts = self.counts.setdefault(key, [0] * (len(self.bounds) + 1))
        for value in values:
            counts[bisect_left(self.bounds, value)] += 1
        self.sums[key] = self.sums.get(key, 0.0) + sum(values)

    def lines(self) -> Iterator[str]:
        """Write the samples: buckets, which include smaller ones, sum and count."""
        for labels, counts in self.counts.items():
            total = 0
            for bound, count in zip((*map(_number, self.bounds), "+Inf"), counts, strict=True):
                total += count
                yield _sample(f"{self.name}_bucket", (*labels, ("le", bound)), total)
            yield _sample(f"{self.name}_sum", labels, self.sums[labels])
            yield _sample(f"{self.name}_count", labels, total)


def exposition(families: Iterable[Family | Histogram]) -> str:
    """Write families that have samples, each with its help and type."""
    lines = []
    for family in families:
        if samples := list(family.lines()):
            help = family.help.replace("\\", "\\\\").replace("\n", "\\n")
            lines += [f"# HELP {family.name} {help}", f"# TYPE {family.name} {family.kind}", *samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: dict[str, object]) -> Labels:
    return tuple([(name, str(value)) for name, value in labels.items()]) if labels else ()


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1 << 53 else repr(float(value))
