"""The table of all runs, with ratios, geometric means, and what peers are spared."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

from bench.fivm.run import figure
from bench.native.peers.systems import Run

HEAD = """# Compiled triggers beside Rust by hand

Made by `make bench-native` (`python -m bench.native.peers`); do not edit. TPC-H at scale {scale:g}, interleaved in
proportion to the sizes of its streams; the same batches for each system, which has one core, in turns. Large batches
build the state; measured are the last of the stream, of each size at most 600 and at most 7 % of its rows. {cores}
cores, load {begin:.1f}–{end:.1f}.

Million tuples a second of processor time, by the mean batch; in brackets the median batch in microseconds.

"""
NOTES = """
- *×*: squallpy by the other, and in brackets by the medians: merges and growth of state are in the mean alone.
- *state*: squallpy's views; of a program the peak of its resident memory, less what it had before the first batch.
- *answer*: all rows at the end, compared with DuckDB's; decimals exactly, averages to 1e-9.
- What programs are spared: each is written for one query and filters before its input. Rows come as columns of 32-bit
  integers (cents, yyyymmdd, numbers of texts), where squallpy reads Arrow in its clock (decimals of 128 bits, dates,
  strings). They know no NULL and no overflow, and do not cut at the LIMIT of Q3 and Q18. None is durable here.
- How they are written: integers as differences, so that sums are kept where a row's multiplicity is; one timestamp a
  batch, which is awaited; arrangements that are compacted as time goes on; fat LTO, the processor's own instructions,
  mimalloc.
"""


@dataclass(frozen=True)
class Report:
    """Runs by query and system, of which each figure is the median; the first system is compared with the others."""

    runs: Mapping[tuple[str, str], Sequence[Run]]
    names: Mapping[str, str]  # of systems, for people
    rows: Sequence[int]

    def text(self, scale: float, begin: float, end: float) -> str:
        """Write all figures; `begin` and `end` are the load then."""
        return (
            HEAD.format(scale=scale, cores=os.cpu_count(), begin=begin, end=end)
            + "".join(self._speeds())
            + "\n"
            + "".join(self._means())
            + "\n"
            + "".join(self._states())
            + NOTES
        )

    @property
    def _others(self) -> list[str]:
        return list(self.names)[1:]

    @property
    def _queries(self) -> list[str]:
        return list(dict.fromkeys(query for query, _ in self.runs))

    def _microseconds(self, query: str, system: str, rows: int, kind: str = "mean") -> float:
        return float(median(getattr(run.times, kind)(rows) for run in self.runs[query, system]))

    def _ratio(self, query: str, other: str, rows: int, kind: str = "mean") -> float:
        mine, its = (self._microseconds(query, system, rows, kind) for system in (next(iter(self.names)), other))
        return its / mine

    def _speeds(self) -> Iterable[str]:
        others = [cell for other in self._others for cell in (self.names[other], "×")]
        yield _head("query", "batch", next(iter(self.names.values())), *others)
        for query in self._queries:
            for rows in self.rows:
                cells = list[str]()
                for system in self.names:
                    if (query, system) not in self.runs:
                        cells += ["", ""]
                        continue
                    mean, middle = (self._microseconds(query, system, rows, kind) for kind in ("mean", "median"))
                    cells.append(f"{figure(rows / mean)} ({figure(middle)})")
                    if system in self._others:
                        mean, middle = (self._ratio(query, system, rows, kind) for kind in ("mean", "median"))
                        cells.append(f"{mean:.2f} ({middle:.2f})")
                yield _line(query, f"{rows:,}", *cells)

    def _means(self) -> Iterable[str]:
        yield _head("geometric mean of ×", "", *(f"{rows:,}" for rows in self.rows))
        for other in self._others:
            queries = [query for query in self._queries if (query, other) in self.runs]
            means = (geometric_mean(self._ratio(query, other, rows) for query in queries) for rows in self.rows)
            yield _line(self.names[other], f"{len(queries)} queries", *(f"{mean:.2f}" for mean in means))

    def _states(self) -> Iterable[str]:
        yield _head("state, MB; answer", *self.names.values())
        for query in self._queries:
            cells = list[str]()
            for system in self.names:
                runs = self.runs.get((query, system), [])
                answers = ", ".join(dict.fromkeys(run.answer for run in runs))
                cells.append(f"{median(run.state for run in runs) / 1e6:,.0f}; {answers}" if runs else "")
            yield _line(query, *cells)


def _head(first: str, *others: str) -> str:
    return _line(first, *others) + f"|---|{'--:|' * len(others)}\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"
