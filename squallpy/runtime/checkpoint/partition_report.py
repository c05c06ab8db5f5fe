"""Reports of state partitions on what their checkpoint has cost, beside the output of a batch."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """A rebuild: its seconds, the step of its snapshot (−1 without one), steps replayed, damaged files."""

    seconds: float
    snapshot: int
    replayed: int
    damaged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SnapshotReport:
    """A snapshot: its step, bytes and seconds."""

    step: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """A state partition's report on a stage of a batch, with the seconds in which it wrote what a restart reads.

    Args:
        counted: Pools that count or keep the rows of relations, with their records and bytes.
    """

    partition: int | str
    seconds: float
    rebuilt: RebuildReport | None = None
    snapshot: SnapshotReport | None = None
    counted: tuple[tuple[str, int, int], ...] = ()


def checkpoint_figures(reports: Iterable[PartitionReport]) -> dict[str, Any]:
    """Return the figures of a batch from the reports of its partitions."""
    reports = tuple(reports)
    named = [(each.partition, each.rebuilt, each.snapshot) for each in reports]
    return {
        "checkpoint": sum(each.seconds for each in reports),
        "rebuilt": [{"partition": name, **asdict(rebuilt)} for name, rebuilt, _ in named if rebuilt],
        "snapshots": [{"partition": name, **asdict(snapshot)} for name, _, snapshot in named if snapshot],
    }
