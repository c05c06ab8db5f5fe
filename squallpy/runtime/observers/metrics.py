"""Metrics of batches: one JSON line for each.

{"batch": 0, "tuples": 10000, "rows": 25, "seconds": 0.31, "state_bytes": 65536, "skipped": 0, "unmatched": 0,
 "duplicates": 0, "late": 0, "received_bytes": 5210, "compared": 31000, "pairs": 9000, "stages": {"feed": 0.04, …},
 "views": {"M_S": {"records": 900, "bytes": 65536, "keys": 7200, …}, …}, "mapping": null, "ilf": null}

"state_bytes" are bytes in use, in memory or mapped files, summed over partitions, without free space. "received_bytes"
are the messages to all stages, "received_rows" the rows for each partition. "rebuilt", if partitions had lost their
state, has for each the snapshot and the number of steps from which it was rebuilt.

"compared" are the comparisons of lookups: steps of searches in sorted indexes, one for each row that is hashed, one for
each record that is found; "pairs" are the rows that result.

If a query reads matrices, "matrices" has for each program the "rank" of the batch as an update, "how" it was applied
(incremental, or evaluated anew: "why"), the "bytes" of its views, the largest relative "drift" observed from rounding,
and, if a matrix has no inverse now, its name as "singular". If a regression over a join touched groups with features
that are constant or collinear, "singular" has their number by its label.

If a join is on a grid, "mapping" is its (n, m), "ilf" the tuples of a joiner, "ilf_ratio" the ratio of its bytes to
those under the best mapping, "busiest" the ratio of the largest joiner to the mean in the grid, "epoch" the number of
completed migrations, "migrated" the completed fraction of a running one (null: none runs), "copied" the tuples that
joiners sent each other. By ranges "mapping" has the grid of each. Under Hybrid, "heavy_keys" have grids of their own,
on a hypercube cells. On several partitions, "joins" has for each join, under any operator, its "mapping" by group or
range, with the "axes" that it counts, the tuples of each joiner ("loads"), by number, those of the most loaded one
("ilf"), the "ratio" of that to the best, and the "bound" that the operator keeps (null: none).

"sources" has for each source of streams without end its "freshness", the seconds from the commit of the batch's first
row at the source until it was visible, and what is unread there, in rows and as the age of the first of them
("lag_rows", "lag_seconds").
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from time import time
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.runtime.observers.join_loads import JoinLoads
from squallpy.runtime.observers.protocol import Observer, QueryStart
from squallpy.runtime.observers.report import LEFT_OUT, BatchReport, JoinReport
from squallpy.runtime.sinks.output_file import AppendedFile

_OF_A_JOIN = ("ilf_ratio", "busiest", "epoch", "copied", "heavy_keys")
_OF_LOOKUPS = ("compared", "pairs")
_NAMED = ("tuples", "rows", "seconds", "state_bytes", *LEFT_OUT, "received_bytes", *_OF_LOOKUPS)


class Metrics(Observer):
    """An observer that adds lines to a file.

    A resumed run adds those that the file lacks, any other run starts it over.
    """

    def __init__(self, path: Path, resumed: bool = False, wall: Callable[[], float] = time) -> None:
        self._file, self._wall, self._joins, self._is_endless = AppendedFile(path), wall, JoinLoads(None), False
        before = self._file.read() if resumed else b""
        whole = before[: before.rfind(b"\n") + 1]  # NB: a crash may have cut the last line short
        self._recorded_batches = _recorded(path, whole)
        self._file.rewrite(whole)

    def on_query_started(self, start: QueryStart) -> None:
        is_spread = start.plan is not None and start.plan.partitions > 1
        self._joins, self._is_endless = JoinLoads(start.plan if is_spread else None), start.batches is None

    def on_plan_changed(self, start: QueryStart) -> None:
        self.on_query_started(start)

    def on_query_progress(self, report: BatchReport) -> None:
        joins = self._joins.note(report)
        if report.number in self._recorded_batches:
            return
        self._recorded_batches.add(report.number)
        line = metrics_line(report) | ({"joins": [asdict(join) for join in joins]} if joins else {})
        line |= {"sources": source_figures(report, self._wall())} if self._is_endless else {}
        self._file.append(f"{json.dumps(line)}\n".encode())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def metrics_line(report: BatchReport) -> dict[str, Any]:
    """Make the record of a batch; None for figures that are not known."""
    join = report.join or JoinReport()
    line = {"batch": report.number} | {name: getattr(report, name) for name in _NAMED}
    line |= {"stages": report.stages, "views": report.views, "mapping": join.mapping, "ilf": join.ilf}
    if rows := report.received_rows:
        line["received_rows"] = [rows.get(str(partition), 0) for partition in range(1 + max(map(int, rows)))]
    if join.mapping:
        line["migrated"] = join.migrated
    line |= {name: value for name in _OF_A_JOIN if (value := getattr(join, name)) is not None}
    line |= {name: value for name in ("matrices", "singular") if (value := getattr(report, name)) is not None}
    return line | ({"rebuilt": report.rebuilt} if report.rebuilt else {})  # partitions that had lost their state


def source_figures(report: BatchReport, now: float) -> dict[str, dict[str, float | None]]:
    """List how fresh a batch is and how far behind, by source; None for what is not known."""
    found = dict[str, dict[str, float | None]]()
    for name, about in report.sources.items():
        unread = about.backlog
        since = unread.since if unread and unread.rows else None
        found[name] = {
            "freshness": None if about.committed is None else max(0.0, now - about.committed),
            "lag_rows": unread.rows if unread else None,
            "lag_seconds": max(0.0, now - since) if since else 0.0 if unread and not unread.rows else None,
        }
    return found


def _recorded(path: Path, lines: bytes) -> set[int]:
    """Find the batches of these lines of a file."""
    try:
        return {json.loads(line)["batch"] for line in lines.splitlines()}
    except (ValueError, KeyError, AttributeError, TypeError):
        raise SquallError("SQ7005", f"{path} is no metrics file of ours", hint="choose another") from None
