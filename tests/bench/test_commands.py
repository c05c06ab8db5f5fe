"""Commands of `bench/` start: their modules and files are where they look for them."""

import re
from importlib import import_module
from pathlib import Path

from bench.data.queries import QUERIES
from bench.table1 import report

ROOT = Path(__file__).parents[2]


def test_modules_find_what_they_import() -> None:
    for path in sorted((ROOT / "bench").rglob("*.py")):
        import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))


def test_commands_that_are_named_exist() -> None:
    texts = [ROOT / "Makefile", *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "bench").rglob("*.md")]
    named = {name for path in texts for name in re.findall(r"-m (bench[.\w]+)", path.read_text())}
    assert len(named) > 10
    places = {name: ROOT / name.replace(".", "/") for name in named}
    assert not [
        name for name, at in places.items() if not (at.with_suffix(".py").exists() or (at / "__main__.py").exists())
    ]


def test_queries_and_the_figures_of_the_paper_are_found() -> None:
    assert all(query.path.exists() for query in QUERIES.values()) and report.paper(1000)
