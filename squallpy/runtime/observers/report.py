"""Reports of a run: of each batch, and of all of them in the end.

BatchReport.of({"tuples": 10, "feed_seconds": 0.1, …})   →   BatchReport(tuples=10, stages={"feed": 0.1}, …)

Partitions add up figures by name; a report has those that are read outside.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any

from squallpy.base.records import dataclass

if TYPE_CHECKING:  # EXPLAIN starts at once
    from squallpy.runtime.sources.source_report import SourceReport

LEFT_OUT = ("skipped", "unmatched", "duplicates", "late")
_STAGE = "_seconds"


@dataclass(frozen=True, slots=True)
class JoinReport:
    """An adaptive join in a batch; None for what it does not have.

    Args:
        mapping: Rows and columns of the grid; of each group, where there are several.
        ilf: The tuples of a joiner.
        ilf_ratio: The bytes of a joiner by those under the best mapping.
        busiest: The tuples of the largest joiner by the mean.
        loads: The tuples of each joiner.
        epoch: The number of completed migrations.
        migrated: The completed fraction of a running migration.
        copied: Tuples that joiners sent each other.
        heavy_keys: Keys with a grid of their own, or cells of their own on a hypercube.
    """

    mapping: Sequence[int] | Sequence[Sequence[int]] | None = None
    ilf: float | None = None
    ilf_ratio: float | None = None
    busiest: float | None = None
    loads: Sequence[int] | None = None
    epoch: int | None = None
    migrated: float | None = None
    copied: int | None = None
    heavy_keys: int | None = None


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A batch as observers see it.

    Args:
        number: Its number among all batches of the query, over restarts.
        tuples: Rows that were read.
        skipped: Rows that could not be read and were left out.
        unmatched: Deletes of rows that were not there.
        duplicates: Rows that break a PRIMARY KEY.
        late: Rows that came after their window had passed; `late_rows`: which, as JSON, by stream.
        dead_letters: Rows under on_error 'dead-letter', as JSON, by source.
        rows: Printed changes.
        seconds: From the end of the batch before to the end of this one, its output among them.
        total_tuples: Rows that were read by all batches of the run.
        stages: Seconds by stage.
        views: Records and bytes by view (`Store.usage`), where they were measured.
        compared: Comparisons of lookups, of which `pairs` rows resulted.
        read_rows: Rows that were read, by source.
        received: Rows that each partition was sent, by stage.
        watermarks: The event time that a stream has reached, in Unix time.
        open_rows: Rows of windows that processing time moves.
        sources: How far behind the batch is, by source, where it was measured.
        matrices: By program how the batch was applied.
        singular: By the label of a regression, groups without coefficients.
        checkpoint: Seconds in which partitions wrote what a restart reads, added up.
        rebuilt: Partitions that had lost their state.
        snapshots: Snapshots that partitions wrote.
        retries: Attempts at tasks that failed.
        images: By stream, old images of updates less new ones.
        profile: Seconds by the path of a span.
    """

    number: int = 0
    tuples: int = 0
    skipped: int = 0
    unmatched: int = 0
    duplicates: int = 0
    late: int = 0
    late_rows: Mapping[str, Sequence[str]] = field(default_factory=dict)
    dead_letters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rows: int = 0
    seconds: float = 0.0
    total_tuples: int = 0
    stages: Mapping[str, float] = field(default_factory=dict)
    views: Mapping[str, Mapping[str, int]] | None = None
    compared: int | None = None
    pairs: int | None = None
    received_bytes: int | None = None
    read_rows: Mapping[str, int] = field(default_factory=dict)
    received: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    watermarks: Mapping[str, float] = field(default_factory=dict)
    open_rows: int = 0
    sources: "Mapping[str, SourceReport]" = field(default_factory=dict)
    join: JoinReport | None = None
    matrices: Mapping[str, Mapping[str, Any]] | None = None
    singular: Mapping[str, int] | None = None
    checkpoint: float | None = None
    rebuilt: Sequence[Mapping[str, Any]] = ()
    snapshots: Sequence[Mapping[str, Any]] = ()
    retries: int = 0
    images: Mapping[str, int] = field(default_factory=dict)
    profile: Mapping[tuple[str, ...], float] = field(default_factory=dict)

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> "BatchReport":
        """Take what a report has from the figures that partitions, policies and executors have added up."""
        known, join, stages = dict[str, Any](), dict[str, Any](), dict[str, float]()
        for name, value in figures.items():
            if name in _NAMES:
                known[name] = value
            elif name in _OF_A_JOIN:
                join[name] = value
            elif name.endswith(_STAGE):
                stages[name.removesuffix(_STAGE)] = value
        times = {name: max(each.values()) / 1e6 for name, each in figures.get("watermarks", {}).items()}
        received = figures.get("received_rows", {})
        shown = JoinReport(**join) if join else None
        return cls(**known, stages=stages, join=shown, received=received, watermarks=times)

    @property
    def received_rows(self) -> dict[str, int]:
        """Rows that each partition was sent, for all stages."""
        total = Counter[str]()
        for rows in self.received.values():
            total.update(rows)
        return dict(total)

    @property
    def left_out(self) -> dict[str, int]:
        """Counts of rows that the answer is without, or that should not have come, by reason."""
        return {name: count for name in LEFT_OUT if (count := getattr(self, name))}

    @property
    def state_bytes(self) -> int | None:
        """Bytes of state in use, where they were measured."""
        return None if self.views is None else sum(view["bytes"] for view in self.views.values())


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The sums of a query's run; `stopped`: it ended before its input did."""

    batches: int = 0
    tuples: int = 0
    skipped: int = 0
    unmatched: int = 0
    duplicates: int = 0
    late: int = 0
    seconds: float = 0.0
    stopped: bool = False

    def with_batch(self, report: BatchReport) -> "RunSummary":
        """Add a batch."""
        more = {name: getattr(self, name) + getattr(report, name) for name in ("tuples", *LEFT_OUT)}
        return replace(self, batches=self.batches + 1, **more)


_NAMES = {f.name for f in fields(BatchReport)} - {"stages", "join", "received", "watermarks"}
_OF_A_JOIN = {f.name for f in fields(JoinReport)}
