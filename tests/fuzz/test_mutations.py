"""Mutated scripts and files are answered, or refused in a line: no other exception, ever.

A few in each run of the tests; `make fuzz N=10000` tries as many as it is told.
"""

import io
import json
from functools import cache
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.catalog.sink_spec import MODES
from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.maintain.matrix.script_programs import Programs
from squallpy.program.explain_text import program_text
from squallpy.runtime.evaluate.constant_evaluation import fold_constant
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.engines import VolatileEngine
from squallpy.testing.ignoring_sink import IgnoringSink
from squallpy.testing.mutations import mutate_bytes, mutate_script
from squallpy.testing.step_tests import list_step_tests, read_steps, run_steps

COLUMNS = "(i INT, d DOUBLE, m DECIMAL(10,2), s VARCHAR, b BOOLEAN)"
QUERY = "SELECT s, b, COUNT(*) AS n, SUM(m) AS m, MAX(d) AS d, MIN(i) AS i FROM t GROUP BY s, b;"
ROWS = 60


@cache
def scripts() -> tuple[str, ...]:
    return tuple(read_steps(path).script for path in list_step_tests().values())


def with_sink(script: str, mode: str) -> str:
    """Let a sink have the last query, over streams without deletes."""
    script = script.replace(", op '__op'", "")
    before, _, query = script.rstrip("; \n").rpartition(";")
    lead = "".join(line for line in query.splitlines(keepends=True) if line.lstrip().startswith("--"))
    sink = f"CREATE SINK o USING csv OPTIONS (path 'o', mode '{mode}') AS "
    return f"{before};\n{lead}{sink}{query.removeprefix(lead).lstrip()};"


def test_any_query_has_a_sink_or_is_refused() -> None:
    kinds = dict.fromkeys(MODES, 0)
    for seed, script in enumerate(scripts()[::15]):
        for mode in MODES:
            draw = Random(seed)
            for each in (with_sink(script, mode), mutate_script(with_sink(script, mode), draw)):
                try:
                    found = compile_script(each, "q.sql", lambda relation: (), Programs().outputs, fold_constant)
                    kinds[mode] += any(query.sink is not None for query in found.queries)
                except SquallError:
                    continue
                except Exception as error:
                    raise AssertionError(each) from error
    assert min(kinds.values()) > 2, kinds


def compile_whole(script: str) -> None:
    """Up to the trigger program."""
    for query in compile_script(script, "q.sql", lambda relation: (), Programs().outputs, fold_constant).queries:
        program_text(to_program(query).program)


def test_mutated_scripts_are_answered_or_refused() -> None:
    refused = 0
    for seed in range(settings().max_examples * 4):
        draw = Random(seed)
        mutant = mutate_script(draw.choice(scripts()), draw)
        try:
            compile_whole(mutant)
        except SquallError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}:\n{mutant}") from error
    assert 0 < refused < settings().max_examples * 4


def test_mutated_queries_run_or_are_refused(tmp_path: Path) -> None:
    """On the rows of their step tests; all changes together are the result."""
    files, refused = [read_steps(path) for path in list_step_tests().values()], 0
    runnable = [steps for steps in files if any(section.head == "batch" for section in steps.sections)]
    for seed in range(settings().max_examples // 4):
        draw = Random(seed)
        steps = draw.choice(runnable)
        mutant = mutate_script(steps.script, draw)
        given = [section for section in steps.sections if section.head.split()[0] in ("table", "batch")]
        path, folder = tmp_path / "mutant.slt", tmp_path / str(seed)
        path.write_text("\n".join([mutant, "no oracle", *(line for s in given for line in (s.head, *s.lines))]))
        folder.mkdir()
        try:
            if has_one_query_over(mutant, steps.script):
                run_steps(path, VolatileEngine(), folder)
        except SquallError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}:\n{mutant}") from error
    assert refused > 0


def has_one_query_over(script: str, original: str) -> bool:
    """True if a script has one query, and the relations of another; raises SquallError where it cannot be bound."""
    bound, before = (
        compile_script(text, "q.sql", lambda relation: (), Programs().outputs, fold_constant)
        for text in (script, original)
    )
    return len(bound.queries) == 1 and bound.relations == before.relations


def csv_file(draw: Random) -> bytes:
    delimiter, end = ",", draw.choice(["\n", "\r\n"])
    texts = ["x", "é", '"a ""q"" b"', '"line\nbreak"', "", "日本"]
    rows = [delimiter.join([f"{i}", f"{i / 7}", f"{i}.25", draw.choice(texts), "true"]) for i in range(ROWS)]
    return (end.join(rows) + end).encode(draw.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))


def json_file(draw: Random) -> bytes:
    texts = ["x", "é", 'a "q"', "line\nbreak", None, {"a": [1]}, 7]
    rows = [{"i": i, "d": i / 7, "m": i + 0.25, "s": draw.choice(texts), "b": True} for i in range(ROWS)]
    return "".join(f"{json.dumps(row)}{draw.choice(['', '', ' '])}\n" for row in rows).encode()


def parquet_file(draw: Random) -> bytes:
    numbers = range(ROWS)
    table = pa.table({
        "i": pa.array(numbers, draw.choice([pa.int32(), pa.int64(), pa.uint16()])),
        "d": [i / 7 for i in numbers],
        "m": pa.array([i * 25 for i in numbers]).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
        "s": [f"x{i % 7}" for i in numbers],
        "b": [None if i % 5 else True for i in numbers],
    })  # fmt: skip
    sink, compression = io.BytesIO(), draw.choice(["none", "snappy", "zstd"])
    pq.write_table(table, sink, row_group_size=draw.choice([10, 100]), compression=compression)
    return sink.getvalue()


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_mutated_files_are_answered_or_refused(format: str, tmp_path: Path) -> None:
    refused, write = 0, {"csv": csv_file, "json": json_file, "parquet": parquet_file}[format]
    for seed in range(settings().max_examples):
        draw = Random(seed)
        (tmp_path / "t.x").write_bytes(mutate_bytes(write(draw), draw))
        skip, declared = draw.choice(["", ", on_error 'skip'"]), draw.choice([COLUMNS, COLUMNS, ""])
        query = QUERY if declared or format != "csv" else "SELECT COUNT(*) AS n FROM t;"
        script = tmp_path / "q.sql"
        script.write_text(f"CREATE STREAM t {declared} USING {format} OPTIONS (path 't.x'{skip});\n{query}")
        try:
            ScriptSession(script, Settings()).run(RunOptions("local", batch_rows=25), IgnoringSink())
        except SquallError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"seed {seed} of {format}: {script.read_text()}") from error
    assert 0 < refused < settings().max_examples
