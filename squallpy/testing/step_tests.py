"""Step tests: a script, batches of ± rows, and what is expected after them, in a file that people can write.

    CREATE STREAM r (a INT, s VARCHAR);            no USING: the rows come from the test
    SELECT a, COUNT(*) AS n FROM r GROUP BY a;

    batch
    + r 1, 'x'
    + r 1, NULL
    - r 1, 'x'
    truncate p                                     all rows of p go, which has upserts

    changes            the printed rows that this batch took away and added
    + 1, 1

    result             the rows of the answer now; `result ordered` if their order counts
    1, 1

Further sections: `batch at 2026-01-01 10:00:00` (a batch with that time, which NOW() is in it), `fails SQ5001` (a
batch that ends the query with this error), `table NAME` (rows of a static table, before the first batch), `restart`
(stop, and go on from the checkpoint), `no oracle` (DuckDB means something else by this SQL), `error SQ2003 2:8` (the
script must be refused so). After every batch the answer is compared with DuckDB's, and with the sum of all changes.
Lines that start with `--` are comments.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import VARCHAR, Type
from squallpy.catalog.relation import TRUNCATED, Relation
from squallpy.catalog.window_spec import NOW
from squallpy.runtime.evaluate.text_column_casts import parse_texts
from squallpy.runtime.formats.type_conversion import sql_type
from squallpy.testing.compare_rows import difference, is_same_row, rows_of, whole_days
from squallpy.testing.oracle import MULT, Answers, Oracle

if TYPE_CHECKING:
    from squallpy.logical.bind import Script
    from squallpy.logical.bind.matrix_ddl import Outputs

Values = list[str | None]
STEPS = Path(__file__).parents[2] / "tests" / "steps"
HEADS = re.compile(
    r"(table [\w.]+|no oracle|batch(?: at [\d :.-]+)?|"
    r"result|result ordered|changes|restart|fails SQ\d{4}|error SQ\d{4}(?: \d+:\d+)?)\s*$"
)
VALUE = re.compile(r"\s*(?:'((?:[^']|'')*)'|([^,']*?))\s*(?:,|$)")
UNSOURCED = re.compile(
    r"(CREATE\s+(STREAM|TABLE)\s+([\w.]+|`(?:[^`]|``)+`)\s*\((?:[^()']|\([^()]*\))*\))(?=\s*(?:;|TIMESTAMP\s+BY))",
    re.IGNORECASE,
)


class Engine(Protocol):
    """Interface of the engines that run a script step by step."""

    def start(self, script: str, checkpoint: Path, tables: dict[str, pa.Table]) -> None:
        """Compile and be ready for the first batch; `tables` are the static ones. Raises SquallError."""

    def expect(self, batches: Sequence[dict[str, pa.Table]]) -> None:
        """Announce the batches that will be pushed next, whether they succeed or not."""

    def push(self, rows: dict[str, pa.Table]) -> pa.Table:
        """Run one micro-batch, each stream with `__mult`; return the printed rows that went and came, with `__mult`
        too."""

    def result(self) -> pa.Table:
        """Return the printed answer."""

    def restart(self) -> None:
        """Stop, and go on from the checkpoint as another process would."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section: its head, its lines, and the number of its first line."""

    head: str
    line: int
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Steps:
    """A step test: script and sections in order."""

    path: Path = field(compare=False)
    script: str
    sections: tuple[Section, ...] = ()


class StepFailure(AssertionError):
    """Failure of a step at its line: actual and expected rows."""


@lru_cache(1)
def list_step_tests() -> dict[str, Path]:
    """List the step tests of the repository by name: file names are unique, whatever folder of tests/steps has them."""
    return {path.stem: path for path in sorted(STEPS.rglob("*.slt"), key=lambda path: path.stem)}


def read_steps(path: Path) -> Steps:
    """Parse a file; streams and tables without USING get one that is never opened."""
    lines = path.read_text(encoding="utf-8").split("\n")
    heads = [i for i, line in enumerate(lines) if HEADS.match(line)]
    ends = [*heads[1:], len(lines)]
    script = "\n".join(lines[: heads[0]] if heads else lines)
    sections = []
    for start, end in zip(heads, ends, strict=True) if heads else ():
        body = (line for line in lines[start + 1 : end] if line.strip() and not line.startswith("--"))
        sections.append(Section(lines[start].strip(), start + 1, tuple(body)))
    return Steps(path, UNSOURCED.sub(_add_source, script), tuple(sections))


def _add_source(match: re.Match[str]) -> str:
    op = ", op '__op'" if match[2].upper() == "STREAM" else ""
    return f"{match[1]} USING csv OPTIONS (path '{match[3]}'{op})"


def run_steps(path: Path, engine: Engine, checkpoint: Path) -> None:
    """Run a file on an engine; raises StepFailure where they disagree."""
    steps = read_steps(path)
    refusal = next((s for s in steps.sections if s.head.startswith("error ")), None)
    if refusal:
        _expect_refusal(steps, refusal, engine, checkpoint)
    else:
        _Run(steps, engine, checkpoint).run()


def _expect_refusal(steps: Steps, section: Section, engine: Engine, checkpoint: Path) -> None:
    _, code, *place = section.head.split()
    try:
        engine.start(steps.script, checkpoint, {})
    except SquallError as error:
        found = f"{error.span.line}:{error.span.column}" if error.span else ""
        if error.code != code or (place and found != place[0]):
            raise _failure(steps, section, f"refused with: {error}") from None
        return
    raise _failure(steps, section, "not refused")


def _failure(steps: Steps, section: Section, text: str) -> StepFailure:
    return StepFailure(f"{steps.path.name}:{section.line}: {section.head}: {text}")


def _expand_table_functions(script: str, compiled: "Script", outputs: "Outputs") -> str:
    """Write the query of a script with its table functions expanded."""
    from squallpy.catalog.catalog import Catalog, ViewDefinition
    from squallpy.frontend.script import parse_script
    from squallpy.frontend.statements import CreateView, Select
    from squallpy.logical.bind.table_functions import expand

    statements = list(parse_script(script, ""))
    (query,) = (statement.query for statement in statements if isinstance(statement, Select))
    declared = {s.name: ViewDefinition(s.name, s.columns, s.query) for s in statements if isinstance(s, CreateView)}
    entries = (compiled.relations, compiled.matrices, compiled.programs, declared)
    catalog = Catalog({name.lower(): entry for some in entries for name, entry in some.items()})
    return query.ast.sql("spark") if expand(catalog, query, outputs) else query.text


class _StepInputs:
    """Inputs and expected answers of a step test, for all engines.

    These are rows of tables; rows of batches, by number of section; and the oracle's answers.
    """

    def __init__(self, steps: Steps) -> None:
        from squallpy.logical.bind import compile_script
        from squallpy.maintain.matrix.script_programs import Programs
        from squallpy.runtime.evaluate.constant_evaluation import fold_constant
        from squallpy.testing.matrix_oracle import CellsFromScratch

        programs = Programs()
        compiled = compile_script(steps.script, steps.path.name, lambda relation: (), programs.outputs, fold_constant)
        (query,) = compiled.queries  # a step test has one
        relations = dict(compiled.relations)
        oracle = None
        if all(section.head != "no oracle" for section in steps.sections):
            cells = CellsFromScratch(compiled, programs.programs) if compiled.matrices else None
            text = _expand_table_functions(steps.script, compiled, programs.outputs) if cells else query.text
            oracle = Oracle(relations, text, dict(views(steps.script)), cells)
        self.tables, self.batches, answered = dict[str, pa.Table](), dict[int, dict[str, pa.Table]](), []
        for number, section in enumerate(steps.sections):
            match section.head.split():
                case ["table", name]:
                    self.tables[name] = table(relations[name], (split(line) for line in section.lines))
                    if oracle:
                        oracle.push(name, self.tables[name])
                case ["batch" | "fails" as kind, *more]:
                    self.batches[number] = parse_batch(section, relations)
                    if kind == "batch" and more:
                        moment = pa.array([datetime.fromisoformat(" ".join(more[1:]))], pa.timestamp("us"))
                        self.batches[number][NOW.relation] = pa.table({NOW.field: moment})
                    answered += [] if kind == "fails" else [self.batches[number]]
        self.answers = Answers(oracle, answered) if oracle else None
        self._stops = [n for n, s in enumerate(steps.sections) if s.head.split()[0] in ("fails", "restart")]

    def batches_until_stop(self, first: int) -> list[dict[str, pa.Table]]:
        """List the batches from a section on, before the engine fails or is stopped."""
        end = next((stop for stop in self._stops if stop >= first), math.inf)
        return [rows for number, rows in self.batches.items() if first <= number < end]


def parse_batch(section: Section, relations: Mapping[str, Relation]) -> dict[str, pa.Table]:
    """Parse the rows of a batch, by stream."""
    rows: dict[str, list[Values]] = {}
    signs: dict[str, list[int]] = {}
    for line in section.lines:
        sign, name, *text = line.split(None, 2)
        values: Values = split(text[0]) if text else [None] * len(relations[name].fields)
        rows.setdefault(name, []).append(values)
        signs.setdefault(name, []).append({"+": 1, "-": -1, "truncate": TRUNCATED}[sign])
    return {
        name: table(relations[name], values).append_column(MULT, pa.array(signs[name], pa.int64()))
        for name, values in rows.items()
    }


_read_inputs = lru_cache(maxsize=512)(_StepInputs)  # one after the other, engines run the same files


class _Run:
    """One run: engine and oracle side by side."""

    def __init__(self, steps: Steps, engine: Engine, checkpoint: Path) -> None:
        self._steps, self._engine, self._inputs, self._answered = steps, engine, _read_inputs(steps), 0
        self._printed: list[tuple[object, ...]] = []
        self._changes: pa.Table | None = None
        engine.start(steps.script, checkpoint, self._inputs.tables)

    def run(self) -> None:
        self._engine.expect(self._inputs.batches_until_stop(0))
        for number, section in enumerate(self._steps.sections):
            match section.head.split():
                case ["batch", *_]:
                    self._batch(section, self._inputs.batches[number])
                case ["fails", code]:
                    self._fails(section, self._inputs.batches[number], code)
                case ["changes"]:
                    self._compare_changes(section)
                case ["result", *ordered]:
                    self._compare_result(section, bool(ordered))
                case ["restart"]:
                    self._engine.restart()
                    self._engine.expect(self._inputs.batches_until_stop(number + 1))

    def _fails(self, section: Section, pushed: dict[str, pa.Table], code: str) -> None:
        try:
            self._engine.push(pushed)
            self._engine.result()
        except SquallError as error:
            if error.code != code:
                raise _failure(self._steps, section, f"failed with: {error}") from None
            return
        raise _failure(self._steps, section, "did not fail")

    def _batch(self, section: Section, pushed: dict[str, pa.Table]) -> None:
        self._changes = self._engine.push(pushed)
        result = rows_of(self._engine.result())
        self._apply(section, self._changes)
        if wrong := difference(self._printed, result):
            raise _failure(self._steps, section, f"all changes together are not the result\n{wrong}")
        if self._inputs.answers:
            answer = self._inputs.answers.after(self._answered)
            self._answered += 1
            if answer is not None and (wrong := difference(whole_days(result), whole_days(answer))):
                raise _failure(self._steps, section, f"not what DuckDB says\n{wrong}")

    def _apply(self, section: Section, changes: pa.Table) -> None:
        """Follow the changes, as a reader of them would."""
        for *row, mult in rows_of(changes):
            if mult > 0:
                self._printed += [tuple(row)] * mult
                continue
            for _ in range(-mult):
                # NB: NaN, which is not equal to itself, must be found too
                place = next((i for i, other in enumerate(self._printed) if is_same_row(other, tuple(row))), None)
                if place is None:
                    raise _failure(self._steps, section, f"took away {tuple(row)}, which was not there")
                self._printed.pop(place)

    def _compare_changes(self, section: Section) -> None:
        assert self._changes is not None, "changes come after a batch"
        schema = self._changes.schema
        expected = []
        for line in section.lines:
            sign, text = line.split(None, 1)
            expected += [(*parse_values(schema, split(text)), {"+": 1, "-": -1}[sign])]
        if wrong := difference(self._changes, expected, residue=0.0):
            raise _failure(self._steps, section, wrong)

    def _compare_result(self, section: Section, ordered: bool) -> None:
        result = self._engine.result()
        expected = [parse_values(result.schema, split(line)) for line in section.lines]
        if wrong := difference(result, expected, ordered, residue=0.0):
            raise _failure(self._steps, section, wrong)


def views(script: str) -> Iterator[tuple[str, str]]:
    """List the views of a script by name, as text."""
    from squallpy.frontend.script import parse_script
    from squallpy.frontend.statements import CreateView

    for statement in parse_script(script, "steps"):
        if isinstance(statement, CreateView):
            columns = f" AS v({', '.join(statement.columns)})" if statement.columns else " AS v"
            yield statement.name, f"SELECT * FROM ({statement.query.text}){columns}"


def split(text: str) -> Values:
    """Split a line into its values: 1, 'it''s', NULL   →   ["1", "it's", None]."""
    values: Values = []
    at = 0
    while at < len(text):
        match = VALUE.match(text, at)
        assert match and match.end() > at, f"cannot read {text!r}"
        quoted, plain = match.groups()
        if quoted is not None:
            values.append(quoted.replace("''", "'"))
        else:
            values.append(None if plain.upper() == "NULL" else plain)
        at = match.end()
    return values


def table(relation: Relation, rows: Iterable[Values]) -> pa.Table:
    """Convert lines to rows of a relation."""
    columns = list(zip(*rows, strict=True)) or [()] * len(relation.fields)
    arrays = [_column(values, f.type) for values, f in zip(columns, relation.fields, strict=True)]
    return pa.table(arrays, [f.name for f in relation.fields])


def _column(values: Iterable[str | None], type: Type) -> pa.Array:
    texts = pa.array(values, pa.string())
    parsed = parse_texts(texts, type)
    assert parsed.null_count == texts.null_count, f"not all of {values} are {type}"
    return parsed


def parse_values(schema: pa.Schema, values: Values) -> tuple[object, ...]:
    """Convert expected values to the types of the printed columns."""
    types = [f.type for f in schema if f.name != MULT]
    assert len(types) == len(values), f"{len(values)} values for {len(types)} columns"
    return tuple(_column([v], sql_type(t) or VARCHAR)[0].as_py() for v, t in zip(values, types, strict=True))
