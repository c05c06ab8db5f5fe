"""Binding and compilation of a session's queries, and the columns that its files were found to have."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.settings import Settings, list_assignments
from squallpy.catalog.catalog import Catalog
from squallpy.catalog.matrices import Matrix, MatrixProgramDefinition
from squallpy.catalog.relation import Relation
from squallpy.compiler import CompiledQuery, Compiler
from squallpy.frontend.declaration_text import quote_name
from squallpy.frontend.script import parse_script
from squallpy.frontend.statements import CreateRelation
from squallpy.logical.bind import Script, ScriptBinder
from squallpy.logical.nodes import Query
from squallpy.runtime.evaluate.constant_evaluation import fold_constant
from squallpy.runtime.replan import with_whole_rows
from squallpy.runtime.reshard import find_immovable_join
from squallpy.runtime.sources import infer_fields
from squallpy.runtime.sources.foreign_source import ForeignSource
from squallpy.runtime.sources.registry import infer_foreign, open_foreign

if TYPE_CHECKING:  # NB: only sessions with matrices import it
    from squallpy.maintain.matrix.matrix_program import MatrixProgram


@dataclass
class SessionCompiler:
    """The binder and the compiler of a session.

    Args:
        base: The folder from which relative paths start.
        columns: Columns that were found in files, as a declaration lists them, by relation.
        rows: Rows that relations had when the plan in force was chosen.
        present: Relations of which these are what there was, not all changes.
        shared: What sources have in common, such as the connection that several are read from.
    """

    settings: Settings
    base: Path
    columns: dict[str, str] = field(default_factory=dict)
    programs: "dict[str, MatrixProgram]" = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    present: tuple[str, ...] = ()
    shared: dict[Any, Any] = field(default_factory=dict)

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts by which a compiler elsewhere binds the same statements."""
        settings = list_assignments(self.settings)
        counts = {"rows": dict(self.rows), "present": self.present}
        return {"columns": dict(self.columns), "settings": settings, "base": str(self.base), **counts}

    def binder(self) -> ScriptBinder:
        """Make a binder without definitions."""
        return ScriptBinder(self._infer, self._outputs, fold_constant)

    def bind(self, statements: Sequence[str]) -> tuple[Query, ...]:
        """Bind the queries of definitions by themselves, so that equal definitions have equal programs."""
        binder = self.binder()
        for text in statements:
            for statement in parse_script(text, "session"):
                binder.bind(statement, is_checked=True)
        return binder.script.queries

    def compiler(self, catalog: Catalog, queries: Sequence[Query]) -> Compiler:
        """Make the compiler of queries over the entries of a catalogue."""
        script = Script(catalog.relations, tuple(queries), catalog.matrices, catalog.programs)
        return Compiler(script, self.settings, self.programs, self.rows, self.present, moves=True)

    def compile(self, catalog: Catalog, queries: Sequence[Query], partitions: int) -> CompiledQuery:
        """Compile queries that are kept fresh together; SQ7003 if a plan that was set has state that cannot move."""
        compiled = self.compiler(catalog, queries).compile(queries, partitions, {})
        if reason := find_immovable_join(compiled.plan):
            raise self._immovable(reason)
        relations = tuple(catalog.relations[r.name] for r in compiled.relations)  # NB: a plan's may number rows, too
        return replace(compiled, plan=with_whole_rows(compiled.plan), relations=relations)

    def open_foreign(self, relation: Relation) -> ForeignSource:
        """Open a source that is no file."""
        if relation.format == "spark":
            message = f"USING spark reads {relation.name} by Spark's readStream, which a session does not"
            raise SquallError("SQ3001", message, relation.span, "run a script with squall run")
        return open_foreign(relation, self.base, lambda _: ("", None), self.shared)  # type: ignore[arg-type,return-value]

    def _immovable(self, reason: str) -> SquallError:
        """Make the error for settings of joins whose state could not go to the plan of the next view."""
        given = f"join.operator={self.settings.join_operator}"
        given = f"{given}, join.groups=on" if self.settings.join_groups else given
        message = f"{given}: a session moves its state to the plan of each new view, and {reason}"
        return SquallError("SQ7003", message, hint="leave it out, or run the query as a script: squall run")

    def _infer(self, relation: Relation) -> Relation:
        """Infer the columns of a relation, once: files may go when they have been read."""
        if relation.name not in self.columns:
            is_foreign = relation.is_foreign
            fields = () if is_foreign else infer_fields(relation, self.base)
            found = infer_foreign(relation, self.base) if is_foreign else replace(relation, fields=fields)
            items = [f"{quote_name(f.name)} {f.type}{'' if f.nullable else ' NOT NULL'}" for f in found.fields]
            key = ", ".join(map(quote_name, found.primary_key))
            items += [f"PRIMARY KEY ({key})"] if key and not relation.primary_key else []
            self.columns[relation.name] = ", ".join(items)
        (created,) = parse_script(f"CREATE STREAM x ({self.columns[relation.name]}) USING pushed", "session")
        assert isinstance(created, CreateRelation)
        declared = created.relation
        named = declared.primary_key or relation.primary_key
        return replace(relation, fields=declared.fields, primary_key=named).with_changes

    def _outputs(self, declared: MatrixProgramDefinition, matrices: Mapping[str, Matrix]) -> tuple[str, ...]:
        from squallpy.maintain.matrix.script_programs import Programs  # NB: only scripts with matrices import it

        return Programs(self.programs).outputs(declared, matrices)
