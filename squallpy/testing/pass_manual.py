"""Reference of the optimizer's passes, as they are listed in the pipeline: `docs/passes.md`."""

from collections.abc import Callable
from typing import Any

from squallpy.explain import list_passes
from squallpy.optimizer import pipeline
from squallpy.optimizer.pass_manager import RulePass

HEAD = """# Passes

`squall explain passes` prints this list; `squall explain passes --time q.sql` adds what each pass takes for a
script, and `squall explain trace q.sql` shows the query before and after each that changes it. `--set
passes=-NAME,-NAME` switches passes and rules off, except those that are required; `--set optimizer=off` switches
off all others. This page is written by `make plans`.

"""


def pass_manual() -> str:
    """Write the text of `docs/passes.md`."""
    rows = [f"| `{rule.__name__}` | {_summary(rule)} |" for rule in _rules()]
    table = "\n".join(["| rule | |", "| --- | --- |", *rows])
    return f"{HEAD}```\n{list_passes()}```\n\n## Rules\n\n{table}\n"


def _rules() -> list[Callable[..., Any]]:
    passes = [each for _, passes in pipeline.ALL for each in passes if isinstance(each, RulePass)]
    rules: list[Callable[..., Any]] = []
    for each in passes:
        rules += [*each.evaluating_rules, *each.exprs, *each.nodes]
    return list(dict.fromkeys(rules))


def _summary(rule: Callable[..., Any]) -> str:
    paragraph = (rule.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(paragraph.split()).replace("|", "&#124;")
