"""The whole engine on one screen: from the text of a script to rows, and EXPLAIN, which stops on the way.

    text → Script → Query → optimised Query → calculus → trigger program → plan → executor → sink
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.bind import Script, compile_script
from squallpy.logical.nodes import Query
from squallpy.logical.show import show
from squallpy.maintain.program import Program
from squallpy.maintain.relational.lower import Lowered, lower
from squallpy.maintain.relational.materialise import materialise
from squallpy.maintain.relational.show import definition, head, program_text
from squallpy.optimizer.stages import optimise
from squallpy.physical.place import place
from squallpy.physical.plan import Plan
from squallpy.physical.show import plan_text, stages_text

STAGES = ("logical", "optimized", "calculus", "triggers", "physical", "stages")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query at every stage."""

    query: Query
    optimised: Query
    lowered: Lowered
    program: Program
    plan: Plan


class Session:
    """A script and its settings."""

    def __init__(self, script: Path, settings: Settings | None = None) -> None:
        self.path, self.settings = script, settings or Settings()
        try:
            self.text = script.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise SquallError("SQ4001", f"cannot read the script {script}: {error}") from None

    @cached_property
    def script(self) -> Script:
        """Text → statements → bound queries."""
        return compile_script(self.text, str(self.path), self._infer)

    def compile(self, query: Query, partitions: int, sizes: dict[str, int]) -> Compiled:
        """Query → optimised query → calculus → trigger program → physical plan."""
        optimised = optimise(query) if self.settings.optimizer else query
        lowered = lower(optimised)
        program = materialise(lowered.view, lowered.finish, lowered.relations)
        return Compiled(query, optimised, lowered, program, place(program, partitions, sizes))

    def explain(self, stage: str) -> str:
        """The queries at one of STAGES; reads no rows and starts no JVM."""
        return "\n".join(self._explain(query, stage) for query in self._queries())

    def _explain(self, query: Query, stage: str) -> str:
        compiled = self.compile(query, self.settings.partitions, self._sizes())
        match stage:
            case "logical":
                return show(compiled.query.plan)
            case "optimized":
                return show(compiled.optimised.plan)
            case "calculus":
                return f"{head(compiled.lowered.view)} :=\n  {definition(compiled.lowered.view)}\n"
            case "triggers":
                return program_text(compiled.program)
            case "physical":
                return plan_text(compiled.plan)
            case "stages":
                return stages_text(compiled.plan)
        raise AssertionError(stage)

    def _queries(self) -> Iterator[Query]:
        if not self.script.queries:
            raise SquallError("SQ1002", f"{self.path}: the script has no SELECT", hint="add one; it is kept fresh")
        yield from self.script.queries

    def _infer(self, relation: Relation) -> tuple[Field, ...]:
        from squallpy.runtime.sources import infer_fields

        return infer_fields(relation, self.path.parent)

    def _sizes(self) -> dict[str, int]:
        """Rows of each relation as far as its files are there: EXPLAIN also works without data."""
        from squallpy.runtime.sources import open_source

        sizes = {}
        for relation in self.script.relations.values():
            try:
                sizes[relation.name] = open_source(relation, self.path.parent).rows
            except SquallError:
                sizes[relation.name] = 0
        return sizes


def fingerprint(compiled: Compiled, batch_rows: int) -> str:
    """What a checkpoint has to agree with: program, placement and replay."""
    relations = [(r.name, r.fields, r.format, sorted(r.options.items())) for r in compiled.program.relations]
    text = repr((program_text(compiled.program), plan_text(compiled.plan), relations, batch_rows))
    return hashlib.sha256(text.encode()).hexdigest()
