"""The cofactor matrix of a join, maintained, beside its peers: `python -m bench.fivm.run`, or `make bench-fivm`.

    --dataset NAME     housing, retailer, ssb, tpch or triangle, all streaming       [default: housing]
    --scale S                                                                         [default: 4]
    --batch LIST       rows of a batch                                                [default: 1000,10000]
    --systems LIST     native, native-march (C++ by hand; stars only), or the query in a form (naive, fsql, cofactor)
                       on an engine (duckdb, squallpy-local[-final], squallpy-compiled[-plain[-final]|-read]),
                       as in fsql/duckdb
    --order, --deletes, --share, --seed     as of `bench.fivm.data`
    --turns N          of C++ and cofactor, one after the other, of which the middle one counts   [default: 5]
    --repeats, --samples, --budget, --out

Each system in a process of its own, in turns; seconds are processor time, as other work shares the machine.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.fivm.answers import of_join, verdict
from bench.fivm.data import add_options, dataset_of
from bench.fivm.native import FLAGS
from bench.fivm.run_one import Task
from bench.fivm.schemas import SCHEMAS
from bench.measure.results import ms, quotient, ratio

HERE = Path(__file__).parents[1]
SYSTEMS = [
    "native", "native-march", "cofactor/squallpy-local", "cofactor/squallpy-compiled",
    "cofactor/squallpy-compiled-read", "cofactor/squallpy-compiled-plain", "cofactor/squallpy-compiled-plain-final",
    "cofactor/squallpy-local-final", "fsql/squallpy-local", "fsql/squallpy-local-final", "fsql/duckdb",
]  # fmt: skip
COMPILED, PLAIN = "cofactor/squallpy-compiled", "cofactor/squallpy-compiled-plain"
PLAIN_FINAL, READ = f"{PLAIN}-final", "cofactor/squallpy-compiled-read"
NATIVE, COFACTOR, SQL, DUCKDB = "native", "cofactor/squallpy-local", "fsql/squallpy-local", "fsql/duckdb"
SQL_COMPILED, NAIVE_COMPILED = "fsql/squallpy-compiled", "naive/squallpy-compiled"
NAMES = {
    "native": "C++ by hand, -O3",
    "native-march": "C++ by hand, -O3 -march=native",
    "duckdb": "DuckDB {}, re-evaluating",
    "squallpy-local": "squallpy, {}",
    "squallpy-compiled": "squallpy, {}, compiled",
    "squallpy-compiled-read": "squallpy, {}, compiled, changes read",
    "squallpy-compiled-plain": "squallpy, {}, compiled, plain sums",
    "squallpy-compiled-plain-final": "squallpy, {}, compiled, plain sums, final answer",
    "squallpy-local-final": "squallpy, {}, final answer",
    "fsql": "F/SQL",
    "naive": "naive SQL",
    "cofactor": "cofactor",
}
HEAD = """# The cofactor matrix of {name}, maintained

Made by `python -m bench.fivm.run`; do not edit. {tuples:,} tuples of {relations} relations, a row of each in turn;
{features} variables, {entries} sums; the join has {joined:,.0f} rows at the end. Rows are decoded
beforehand, seconds are processor time of all threads; C++ and DuckDB have one. C++ and cofactor run in {turns} turns,
one after the other, of which the middle one counts. {machine}.

"""
COLUMNS = (
    "batch", "system", "tuples/s", "seconds", "p50 ms", "2nd ms", "last ms", "flat", "one mix", "× C++", "last × C++",
    "views MB", "× columns", "first s", "load", "answer",
)  # fmt: skip
NOTES = """
- *2nd*, *last*: mean batch in the second and the last tenth of the stream, from where every key is there on if that is
  in its first half; *flat*: their quotient. As streams end one after another, late batches are of other relations.
  *one mix*: from there on, how much a batch grows among those with as many rows of each relation, by a line through
  them, multiplied over all such mixes.
- *× C++*, *last × C++*: the seconds of all batches, and of those in the last tenth, by those of C++ by hand, -O3.
- *× columns*: by the bytes of the columns that are read. *first*: from the text to the end of the first batch, in a
  process that has squallpy loaded.
- *~*: extrapolated from batches spread over the stream. *load*: runnable processes as the run began and ended.
- *answer*: counts exactly, other sums to {tolerance:g}, as by NumPy over the join at the end.
- C++ keeps the sums, and prints no changes. squallpy notes the changes of each batch, of which rows are made when they
  are read, behind the clock but where the table says *changes read*; compiled, the cells of the matrix are derived
  then, too. That leaves the next batch cold caches, as C++'s never are. With *final answer*, only the answer at the
  end.
"""


@dataclass(frozen=True)
class Bar:
    """A ratio with what it is to reach, if anything, by rows of a batch if it differs."""

    text: str
    value: Callable[[Mapping[str, Any]], float | None]  # of results by system, those of one size of batches
    limit: float | Mapping[int, float] | None = None
    at_least: bool = True

    def line(self, results: Mapping[str, Any], batch_rows: int) -> str | None:
        """Write the bar as a line of a table, if it was measured."""
        value = self.value(results)
        if value is None:
            return None
        limit = self.limit.get(batch_rows) if isinstance(self.limit, Mapping) else self.limit
        if limit is None:
            return f"| {batch_rows:,} | {self.text} | {figure(value)} | | |"
        sign, met = ("≥", value >= limit) if self.at_least else ("≤", value <= limit)
        return f"| {batch_rows:,} | {self.text} | {figure(value)} | {sign} {limit:g} | {'pass' if met else 'missed'} |"


def by(one: str, other: str, figure: str) -> Callable[[Mapping[str, Any]], float | None]:
    """Divide a figure of one system by that of another."""
    return lambda results: quotient(results.get(one, {}).get(figure), results.get(other, {}).get(figure))


def of(system: str, figure: str, divisor: str) -> Callable[[Mapping[str, Any]], float | None]:
    """Divide a figure of a system by another of its figures."""
    return lambda results: quotient(results.get(system, {}).get(figure), results.get(system, {}).get(divisor))


def figure_of(system: str, figure: str) -> Callable[[Mapping[str, Any]], float | None]:
    """Take a figure of a system."""
    return lambda results: results.get(system, {}).get(figure)


BARS = (
    Bar("cofactor, tuples/s, by F/SQL's on squallpy", by(COFACTOR, SQL, "tuples_per_second"), 5),
    Bar("cofactor, tuples/s, by F/SQL's, both compiled", by(COMPILED, SQL_COMPILED, "tuples_per_second")),
    Bar("cofactor, tuples/s, by naive SQL's, both compiled", by(COMPILED, NAIVE_COMPILED, "tuples_per_second")),
    Bar("DuckDB's batch in the last tenth by cofactor's", by(DUCKDB, COFACTOR, "last_tenth"), {1_000: 100, 10_000: 30}),
    Bar("cofactor, tuples/s, by C++'s", by(COFACTOR, NATIVE, "tuples_per_second"), 0.7),
    Bar("cofactor compiled, tuples/s, by C++'s", by(COMPILED, NATIVE, "tuples_per_second"), 1.5),
    Bar("cofactor compiled, plain sums as C++ has them, tuples/s, by C++'s", by(PLAIN, NATIVE, "tuples_per_second")),
    Bar(
        "– and the answer at the end, as C++ has it, tuples/s, by C++'s",
        by(PLAIN_FINAL, NATIVE, "tuples_per_second"),
        1.5,
    ),
    Bar("cofactor compiled, changes read in time, tuples/s, by C++'s", by(READ, NATIVE, "tuples_per_second")),
    Bar("cofactor, growth of a batch of one mix of relations", figure_of(COFACTOR, "growth"), 1.2, False),
    Bar("cofactor compiled, growth of a batch of one mix of relations", figure_of(COMPILED, "growth"), 1.2, False),
    Bar("cofactor, batch in the last tenth by the second, of other mixes", of(COFACTOR, "last_tenth", "second_tenth")),
    Bar("cofactor, bytes of views by those of the columns", of(COFACTOR, "views", "read_bytes"), 6, False),
    Bar("cofactor, seconds from text to first batch", figure_of(COFACTOR, "first"), 1, False),
    Bar("C++, tuples/s, by F/SQL's on squallpy", by(NATIVE, SQL, "tuples_per_second")),
    Bar("DuckDB's batch in the last tenth by C++'s", by(DUCKDB, NATIVE, "last_tenth")),
)


def main() -> None:
    given = parse()
    dataset, results = dataset_of(given), dict[int, dict[str, Any]]()
    tasks = [
        [Task(system, dataset.schema.name, dataset.scale, dataset.share, dataset.order, dataset.deletes, dataset.seed,
              batch_rows, given.repeats, given.samples, given.budget) for system in given.systems]
        for batch_rows in given.batch
    ]  # fmt: skip
    stream = tasks[0][0].stream
    expected = of_join(dataset.schema, stream)
    shape = {
        "name": dataset.name,
        "tuples": stream.replay.total,
        "relations": len(dataset.schema.relations),
        "features": len(dataset.schema.features),
        "entries": (len(expected) * (len(expected) + 1)) // 2,
        "joined": expected[0, 0],
        "turns": given.turns,
        "machine": machine(),
    }
    text = HEAD.format(**shape) + f"| {' | '.join(COLUMNS)} |\n|{'--:|' * len(COLUMNS)}\n"
    print(text, end="")
    for several in tasks:
        found: dict[str, list[dict[str, Any]]] = {task.system: [] for task in several}
        for turn in range(given.turns):
            for task in several:
                if turn == 0 or (has_turns(task.system) and found[task.system]):
                    result = run(task)
                    if "refused" in result:
                        print(f"bench: {task.system} cannot be measured: {result['refused']}", file=sys.stderr)
                        continue
                    if "moments" in result:
                        result["answer"] = verdict(np.array(result.pop("moments")), expected)
                    found[task.system].append(result)
        for system, turns in found.items():
            if turns:
                of_size = results.setdefault(turns[0]["batch_rows"], {})
                of_size[system] = middle(turns)
                text += line(of_size[system], of_size.get(NATIVE, {}))
                print(text.splitlines()[-1], flush=True)
    text += bars(results) + NOTES.format(tolerance=1e-9)
    print(bars(results))
    given.out = given.out or HERE / "results" / f"fivm-{dataset.name}.md"
    given.out.write_text(text)


def parse() -> argparse.Namespace:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.fivm.run", description=__doc__, formatter_class=about)
    parser.add_argument("--dataset", dest="schema", choices=SCHEMAS, default="housing")
    parser.add_argument("--scale", type=float, default=4.0)
    add_options(parser)
    parser.add_argument("--batch", type=lambda text: [int(rows) for rows in text.split(",")], default=[1_000, 10_000])
    parser.add_argument("--systems", type=lambda text: text.split(","), default=SYSTEMS)
    parser.add_argument("--turns", type=int, default=5, help="of C++ and cofactor, whose middle counts  [default: 5]")
    parser.add_argument("--repeats", type=int, default=3, help="of a system after a warm-up  [default: 3]")
    parser.add_argument("--samples", type=int, default=20, help="batches that DuckDB measures  [default: 20]")
    parser.add_argument(
        "--budget", type=float, default=300.0, help="seconds after which a run is stopped  [default: 300]"
    )
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def has_turns(system: str) -> bool:
    """True if a system takes seconds."""
    return system in FLAGS or system.startswith("cofactor/squallpy")


def middle(turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Choose the turn with the median seconds; an answer that is off in one of them is told."""
    chosen = sorted(turns, key=lambda result: result["seconds"])[(len(turns) - 1) // 2]
    wrong = [result["answer"] for result in turns if result.get("answer", "equal") != "equal"]
    return chosen | ({"answer": wrong[0]} if wrong else {})


def run(task: Task) -> dict[str, Any]:
    """Run a task in a process of its own."""
    command = [sys.executable, "-m", "bench.fivm.run_one", json.dumps(asdict(task))]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE.parent).stdout
    result: dict[str, Any] = json.loads(said.splitlines()[-1])
    return result


def machine() -> str:
    """Name the processor, and how many there are."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return f"{os.cpu_count()} cores, {model}, load {os.getloadavg()[0]:.1f}"


def name(system: str) -> str:
    """Name a system as people would."""
    form, _, engine = system.partition("/")
    return NAMES[engine].format(NAMES[form]) if engine else NAMES[form]


def line(result: Mapping[str, Any], native: Mapping[str, Any]) -> str:
    """Write a result as a line of the table."""
    times = (quotient(result[key], native.get(key)) for key in ("seconds", "last_tenth"))
    views, first = result.get("views"), result.get("first")
    memory = quotient(views, result.get("read_bytes"))
    cells = [
        f"{result['batch_rows']:,}", name(result["system"]),
        f"{'~' * result.get('extrapolated', False)}{result['tuples_per_second']:,.0f}", figure(result["seconds"]),
        ms(result["p50"]), ms(result["second_tenth"]), ms(result["last_tenth"]), ratio(dict(result)),
        f"{result['growth']:.2f}" if result.get("growth") else "", *map(figure, times),
        f"{views / 1e6:.1f}" if views else "", f"{memory:.2f}" if memory else "", f"{first:.2f}" if first else "",
        f"{result['load']:.1f}–{result['load_after']:.1f}", result.get("answer", "not reached"),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |\n"


def figure(value: float | None) -> str:
    """Write a number with three digits: figure(2662.1) → 2,660."""
    return "" if value is None else f"{float(f'{value:.3g}'):,g}"


def bars(results: Mapping[int, Mapping[str, Any]]) -> str:
    """Write what was measured beside what is to be reached."""
    lines = [found for rows, systems in results.items() for bar in BARS if (found := bar.line(systems, rows))]
    if not lines:
        return ""
    return "\n| batch | ratio | measured | bar | |\n|--:|---|--:|--:|---|\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
