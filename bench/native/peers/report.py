"""The table of all runs, with ratios, geometric means, and what peers are spared."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import geometric_mean, median

from bench.fivm.run import figure
from bench.native.peers.systems import Run

HEAD = """# Compiled triggers beside Rust by hand

Made by `make bench-native` (`python -m bench.native.peers`); do not edit. TPC-H at scale {scale:g}, interleaved in
proportion to the sizes of its streams; the same batches for each system, which has one core, in turns. Measured
are the last of the stream, of each size at most 600 and at most 7 % of its rows; those before them have 1,000 rows, or
10,000 where that is measured. {cores} cores, load {begin:.1f}–{end:.1f}.

{memory}Million tuples a second of processor time, by the mean batch; in brackets the median batch in microseconds.

"""
KEPT = """All have memory that the machine has had before (`bench/measure/warm_memory.py`): else its host, which takes
back what is not used, finds each page when it is touched first, 2.3 ms a MB.

"""
NOTES = """
- *×*: squallpy by the other, and in brackets by the medians: merges and growth of state are in the mean alone.
- *state*: squallpy's views; of a program the peak of its resident memory, less what it had before the first batch.
- *answer*: all rows at the end, compared with DuckDB's; decimals exactly, averages to 1e-9.
- *summed*: a batch's sums by group are added up before they enter, as squallpy's feeds do, for Q1 and Q6, which have
  few groups (of DBSP for Q1: Q6's weights are as few). In geometric means the program without stands in for the other
  queries. DBSP has no Q17.
- What programs are spared: each is written for one query and filters before its input. Rows come as columns of 32-bit
  integers (cents, yyyymmdd, numbers of texts), where squallpy reads Arrow in its clock (decimals of 128 bits, dates,
  strings). They know no NULL and no overflow, and do not cut at the LIMIT of Q3 and Q18. None is durable here. DBSP's
  sums are of rows that nobody deletes, hence it keeps no second copy of them.
- How differential dataflow's are written: integers as differences, so that sums are kept where a row's multiplicity is;
  one timestamp a batch, which is awaited; arrangements that are compacted as time goes on; fat LTO, the processor's own
  instructions, mimalloc. DBSP's: built alike; integers as weights, chained aggregates where they are summed; one
  transaction a batch, which the one worker takes in its own thread; no storage; state merged by a thread that has the
  same core and is in the clock.
"""


@dataclass(frozen=True)
class Report:
    """Runs of which each figure is the median; the first system is compared with the others."""

    runs: Mapping[tuple[str, int, str], Sequence[Run]]  # by query, rows of a batch, and system
    names: Mapping[str, str]  # of systems, for people
    plain: Mapping[str, str]  # the system that stands in for another, in the means, where that has no run
    kept: bool = False  # with memory that the machine has had before

    def text(self, scale: float, begin: float, end: float) -> str:
        """Write all figures; `begin` and `end` are the load then."""
        return (
            HEAD.format(scale=scale, cores=os.cpu_count(), begin=begin, end=end, memory=KEPT if self.kept else "")
            + "".join(self._speeds())
            + "\n"
            + "".join(self._means())
            + "\n"
            + "".join(self._states())
            + NOTES
        )

    @property
    def _queries(self) -> list[str]:
        return list(dict.fromkeys(query for query, _, _ in self.runs))

    @property
    def _rows(self) -> list[int]:
        return list(dict.fromkeys(rows for _, rows, _ in self.runs))

    @property
    def _ours(self) -> str:
        return next(iter(self.names))

    @property
    def _others(self) -> list[str]:
        return list(self.names)[1:]

    def _microseconds(self, query: str, rows: int, system: str) -> tuple[float, float] | None:
        """Return a batch's mean and median."""
        times = [(run.times.mean(rows), run.times.median(rows)) for run in self.runs.get((query, rows, system), [])]
        return (median(mean for mean, _ in times), median(middle for _, middle in times)) if times else None

    def _ratios(self, query: str, rows: int, other: str) -> tuple[float, float] | None:
        """Return by how much ours is quicker, by the mean and by the median."""
        mine, its = (self._microseconds(query, rows, system) for system in (self._ours, other))
        return (its[0] / mine[0], its[1] / mine[1]) if mine and its else None

    def _own_or_plain(self, query: str, rows: int, other: str) -> tuple[float, float] | None:
        """Return a system's ratios, or those of the one that stands in where it has none."""
        return self._ratios(query, rows, other) or self._ratios(query, rows, self.plain.get(other, ""))

    def _speeds(self) -> Iterator[str]:
        yield head("query", "batch", self.names[self._ours], *(c for o in self._others for c in (self.names[o], "×")))
        for query, rows in product(self._queries, self._rows):
            cells = list[str]()
            for system in self.names:
                times = self._microseconds(query, rows, system)
                cells.append(f"{figure(rows / times[0])} ({figure(times[1])})" if times else "")
                if system != self._ours:
                    ratios = self._ratios(query, rows, system)
                    cells.append("{:.2f} ({:.2f})".format(*ratios) if ratios else "")
            yield line_of(query, f"{rows:,}", *cells)

    def _means(self) -> Iterator[str]:
        yield head("geometric mean of ×", *(f"{rows:,}" for rows in self._rows))
        for other in self._others:
            cells = list[str]()
            for rows in self._rows:
                found = [ratios for query in self._queries if (ratios := self._own_or_plain(query, rows, other))]
                means = [geometric_mean(values) for values in zip(*found, strict=True)]
                cells.append("{:.2f} ({:.2f})".format(*means) if means else "")
            yield line_of(self.names[other], *cells)

    def _states(self) -> Iterator[str]:
        yield head("state, MB; answer", *self.names.values())
        for query in self._queries:
            cells = list[str]()
            for system in self.names:
                runs = [run for rows in self._rows for run in self.runs.get((query, rows, system), [])]
                answers = ", ".join(dict.fromkeys(run.answer for run in runs))
                cells.append(f"{median(run.state for run in runs) / 1e6:,.0f}; {answers}" if runs else "")
            yield line_of(query, *cells)


def head(first: str, *others: str) -> str:
    return line_of(first, *others) + f"|---|{'--:|' * len(others)}\n"


def line_of(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"
