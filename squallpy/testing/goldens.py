"""Golden plans: EXPLAIN of the standard queries as files, reviewed as diffs; pages of docs/; fixtures.

python -m squallpy.testing.goldens            rewrite plans/*.txt, docs/sql.md, docs/passes.md, docs/errors/*.md,
                                              tests/passes/*.txt, docs/notebook.ipynb and the consoles of docs/*.md
python -m squallpy.testing.goldens --check    exit status 1, and what differs, if they are not what the engine says now

Plans are made for fixed row counts, those of TPC-H and TPC-DS at scale 1: they do not depend on data that happens to be
there.
"""

import sys
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from pathlib import Path

from squallpy.base.settings import Settings
from squallpy.compiler import to_program
from squallpy.explain import Tracer, stage_text
from squallpy.logical.bind import compile_script
from squallpy.plan_file import load_plan
from squallpy.script_session import ScriptSession
from squallpy.testing.console_pages import with_outputs
from squallpy.testing.error_pages import error_pages
from squallpy.testing.notebooks import run_notebook
from squallpy.testing.pass_manual import pass_manual
from squallpy.testing.sql_manual import manual

ROOT = Path(__file__).parents[2]
PLANS = ROOT / "plans"
BY_HAND = PLANS / "by_hand"
PASSES = ROOT / "tests" / "passes"
STREAMS = PASSES / "streams.sql"
DOCS = ROOT / "docs"
NOTEBOOK = DOCS / "notebook.ipynb"
CONSOLES = [DOCS / f"{name}.md" for name in ("auxiliary", "dbt_and_pipelines", "deltas", "state")]
ROWS = {
    "region": 5, "nation": 25, "supplier": 10_000, "customer": 150_000, "part": 200_000, "partsupp": 800_000,
    "orders": 1_500_000, "lineitem": 6_001_215,
} | {
    "store_sales": 2_880_404, "customer_address": 50_000, "customer_demographics": 1_920_800,
    "household_demographics": 7_200, "date_dim": 73_049, "item": 18_000, "promotion": 300, "store": 12,
}  # fmt: skip
PARTITIONS = 2
IN_BLOCKS = "blocks"
CODE = ("q1", "q3", "q6")  # queries whose printed triggers are reviewed


def list_scripts() -> list[Path]:
    """List the scripts that have golden plans: the paper's example, and those of examples/."""
    return [*sorted(PLANS.glob("*.sql")), *sorted((ROOT / "examples").glob("*/*.sql"))]


def plan_path(script: Path) -> Path:
    """Locate the plans of a script: plans/ for TPC-H and the paper's example, a folder of their own for the others."""
    folder = PLANS if script.parent.name in ("plans", "tpch") else PLANS / script.parent.name
    return folder / f"{script.stem}.txt"


def explain_script(script: Path) -> str:
    """Explain the one query of a script in the stages `triggers`, `physical` and `stages`.

    If it has matrices, `logical` comes too, and the plan with the matrices in blocks; if it has view trees, these.
    """
    session, stages = ScriptSession(script), ["viewtree"] if script.parent.name == "fivm" else []
    stages += ["triggers", "physical", "stages"]
    if not session.script.matrices:
        return "\n".join(_texts(session, stages))
    spread = ScriptSession(script, Settings(matrix_place=IN_BLOCKS))
    return "\n".join(
        [*_texts(session, ["logical", *stages]), *_texts(spread, stages[1:], f" --set matrix.place={IN_BLOCKS}")]
    )


def _texts(session: ScriptSession, stages: Iterable[str], options: str = "") -> Iterator[str]:
    (query,) = session.script.queries
    compiled = session.compile(query, PARTITIONS, {name: ROWS.get(name, 0) for name in session.script.relations})
    for stage in stages:
        text = stage_text(compiled, stage, session.yardstick).rstrip()
        yield f"# squall explain {stage} {session.path.name}{options}\n\n{text}\n"


def explain_code(script: Path) -> str:
    """Explain the one query of a script in the stage `code`."""
    session = ScriptSession(script)
    return stage_text(session.compile(session.script.queries, 1, {}), "code")


def pass_fixture(text: str) -> str:
    """Bring the fixture of a pass up to date: `-- NAME`, queries over `streams.sql`, their plan before and after.

    The first step of that name is shown.
    """
    head, sql = text.split("\n\n")[0].strip().split("\n", 1)
    script = f"{STREAMS.read_text()}\n{sql}"
    tracer = Tracer()
    to_program(*compile_script(script, "q.sql", lambda relation: ()).queries, observer=tracer)
    step = next((step for step in tracer.steps if step.name == head.removeprefix("-- ")), None)
    if step is None:
        return f"{head}\n{sql}\n\nis not changed by it\n"
    return f"{head}\n{sql}\n\n-- before\n{step.before}\n-- after\n{step.after}"


def compare_files() -> str:
    """Compare the files with what the engine says; empty if they agree."""
    return "\n".join(_compare_files())


def _compare_files() -> Iterator[str]:
    known = _files()
    for path, text in known.items():
        old = path.read_text() if path.exists() else ""
        yield from unified_diff(old.splitlines(), text.splitlines(), path.name, f"{path.name} now", lineterm="")
    for path in sorted(set(PLANS.rglob("*.txt")) - set(known)):
        yield f"{path.name} belongs to no script"


def explain_plan(path: Path) -> str:
    """Explain the physical plan of a plan put together in Python."""
    session = load_plan(path)
    sizes = {name: ROWS.get(name, 0) for name in session.script.relations}
    text = stage_text(session.compile(session.script.queries, session.settings.partitions, sizes), "physical")
    return f"# squall explain physical {path.name}\n\n{text}"


def _files() -> dict[Path, str]:
    plans = {plan_path(script): explain_script(script) for script in list_scripts()}
    plans |= {BY_HAND / f"{path.stem}.txt": explain_plan(path) for path in sorted(PLANS.glob("*.py"))}
    plans |= {PLANS / "code" / f"{name}.txt": explain_code(ROOT / "examples" / "tpch" / f"{name}.sql") for name in CODE}
    pages = {DOCS / "sql.md": manual(), DOCS / "passes.md": pass_manual()}
    pages[NOTEBOOK] = run_notebook(NOTEBOOK)
    pages |= {path: with_outputs(path.read_text()) for path in CONSOLES}
    return (
        plans
        | pages
        | error_pages()
        | {path: pass_fixture(path.read_text()) for path in PASSES.glob("*.txt") if path.name != "at_work.txt"}
    )


def rewrite() -> None:
    """Bring the files up to date."""
    for path, text in _files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        changed = compare_files()
        sys.exit(f"{changed}\n\n`make plans` accepts this" if changed else 0)
    rewrite()
