"""AST → logical plan: names resolved, types derived, casts added, anything unknown refused at its place.

compile_script("CREATE STREAM r (a INT) USING csv OPTIONS (path 'r.csv'); SELECT a FROM r;", "q.sql", infer)
  →  Script(relations={"r": …}, queries=(Query(Project(Scan)),))
"""

from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING

from squallpy.base.errors import Notice, SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.catalog.catalog import Catalog, Entry, ViewDefinition
from squallpy.catalog.matrices import Matrix, MatrixProgramDefinition
from squallpy.catalog.relation import MULT, Field, ForeignKey, Relation
from squallpy.catalog.window_spec import ARRIVAL
from squallpy.logical.constant_folding import Evaluate, only_literals
from squallpy.logical.nodes import Node, Query

if TYPE_CHECKING:
    from squallpy.frontend.query import SelectText
    from squallpy.frontend.statements import CreateView, Existing, Statement
    from squallpy.logical.bind.matrix_ddl import Outputs

Infer = Callable[[Relation], tuple[Field, ...] | Relation]
"""Gives the columns of a relation that lists none, or the whole relation where its source tells a key, too."""
SESSION_HINT = "write it at the prompt of `squall`, after squall -c, or in Session.sql of Python"


@dataclass(frozen=True, slots=True)
class Script:
    """A compiled script: its relations, matrices and matrix programs by name, its queries in order, and notices."""

    relations: dict[str, Relation]
    queries: tuple[Query, ...]
    matrices: dict[str, Matrix] = field(default_factory=dict)
    programs: dict[str, MatrixProgramDefinition] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


def compile_script(
    text: str, file: str, infer: Infer, outputs: "Outputs | None" = None, evaluate: Evaluate = only_literals
) -> Script:
    """Parse and bind a script.

    `infer` gives the fields of a relation declared without columns, the op column left out; `outputs` reads a matrix
    program; `evaluate` computes expressions where a constant is needed. Raises SquallError at the first mistake, with
    its place in `file`.
    """
    from squallpy.frontend.script import parse_script

    binder = ScriptBinder(infer, outputs, evaluate)
    for statement in parse_script(text, file):
        binder.bind(statement)
    return binder.script


class ScriptBinder:
    """A script as its statements are bound, one after the other."""

    def __init__(self, infer: Infer, outputs: "Outputs | None" = None, evaluate: Evaluate = only_literals) -> None:
        self._infer, self._outputs, self._evaluate = infer, outputs, evaluate
        self.catalog, self._queries = Catalog(), list[Query]()

    def bind(self, statement: "Statement", is_checked: bool = False) -> None:
        """Declare what a statement declares, and bind its query.

        Args:
            is_checked: It was bound before, so that a view has no mistakes to be found.
        """
        from squallpy.frontend.statements import (
            CreateFunction,
            CreateMatrix,
            CreateOrder,
            CreateProgram,
            CreateRelation,
            CreateSink,
            CreateView,
            Select,
        )
        from squallpy.logical.bind.matrix_ddl import bind_matrix, bind_program

        catalog = self.catalog
        match statement:
            case CreateRelation(relation, existing=existing):
                self._declare(check_fields(complete(relation, self._infer)), existing)
            case CreateView(alters=False):
                self._bind_view(statement, is_checked)
            case CreateFunction(existing=existing):
                from squallpy.logical.bind.defined_functions import define

                self._declare(define(catalog, statement, self._evaluate), existing)
            case CreateMatrix():
                catalog.add(bind_matrix(catalog, statement))
            case CreateProgram():
                assert self._outputs, "nobody reads matrix programs"
                catalog.add(bind_program(catalog, statement, self._outputs))
            case CreateOrder(order):
                catalog.add(order)
            case CreateSink(sink, query, existing):
                from squallpy.logical.bind.sinks import bind_sink

                bound = self.query(query)
                if self._declare(sink, existing):
                    self._queries.append(replace(bound, sink=bind_sink(sink, bound)))
            case Select(query):
                self._queries.append(self.query(query))
            case _:
                word = "ALTER" if isinstance(statement, CreateView) else type(statement).__name__.upper()
                raise SquallError("SQ3001", f"{word} is for a session, not for a script", statement.span, SESSION_HINT)

    def query(self, query: "SelectText", view: ViewDefinition | None = None) -> Query:
        """Bind a query, or that of a materialized view."""
        from squallpy.logical.bind.table_functions import expand

        expand(self.catalog, query, self._outputs)
        bound = bind_top(self.catalog, query, len(self._queries) + 1, self._evaluate)
        return replace(bound, view=view.name, names=view.columns or bound.names) if view else bound

    def view(self, created: "CreateView", is_checked: bool = False) -> ViewDefinition:
        """Bind the query of a view for its mistakes."""
        from squallpy.logical.bind.table_functions import expand

        expand(self.catalog, created.query, self._outputs)
        view = ViewDefinition(created.name, created.columns, created.query, created.span, created.is_materialized)
        return view if is_checked else replace(view, checked=check_view(self.catalog, view, self._evaluate))

    def _bind_view(self, created: "CreateView", is_checked: bool) -> None:
        view = self.view(created, is_checked)
        if self._declare(view, created.existing) and view.is_materialized:
            self._queries.append(self.query(created.query, view))

    def _declare(self, entry: Entry, existing: "Existing") -> bool:
        """Declare something, unless it exists and is kept; a script has nothing to replace."""
        from squallpy.frontend.statements import Existing

        if existing is Existing.KEEP and entry.name.lower() in self.catalog.entries:
            return False
        self.catalog.add(entry)
        return True

    @property
    def script(self) -> Script:
        """The script so far; SQ2001, SQ2003 or SQ2007 for foreign keys to what is not there."""
        catalog = self.catalog
        for relation in catalog.relations.values():
            for reference in relation.references:
                check_reference(catalog, reference)
        return Script(
            catalog.relations, tuple(self._queries), catalog.matrices, catalog.programs, tuple(catalog.notices)
        )


def complete(relation: Relation, infer: Infer) -> Relation:
    """Complete a relation by the fields that its source has, where the script lists none."""
    from squallpy.frontend.ddl import check_timestamp

    if relation.fields:
        return relation
    try:
        inferred = infer(relation)
        found = inferred if isinstance(inferred, Relation) else replace(relation, fields=inferred)
        fields = found.fields
        if not relation.is_foreign and (taken := next((f.name for f in fields if f.metadata), None)):
            message = f'the column "{taken}" of the files has a name that tells where a row is from'
            raise SquallError("SQ2007", message, hint="list the other columns after the name")
        if relation.timestamp:
            check_timestamp(relation.timestamp, fields, relation.span)
    except SquallError as error:
        raise error.at(relation.span) from None
    return found


def check_fields(relation: Relation) -> Relation:
    """Refuse a field that is called as a column that readers add: SQ2007."""
    for name in (f.name for f in relation.fields if f.name.lower() in (MULT, ARRIVAL)):
        raise SquallError(
            "SQ2007", f'"{name}" is the name of a column that is added to rows', relation.span, "rename it"
        )
    return relation


def check_reference(catalog: Catalog, reference: ForeignKey) -> None:
    """Check that what a foreign key names is there, perhaps further below: SQ2001, SQ2003, SQ2007."""
    relation, name = catalog.entries.get(reference.relation.lower()), reference.relation
    if not isinstance(relation, Relation):
        raise SquallError("SQ2001", f'unknown table "{name}"', reference.span, nearest(name, catalog.relations))
    keys = reference.keys or relation.primary_key
    for key in keys:
        if relation.field(key) is None:
            hint = nearest(key, [f.name for f in relation.fields])
            raise SquallError("SQ2003", f'"{name}" has no column "{key}"', reference.span, hint)
    if len(keys) != len(reference.fields):
        message = f"the primary key of {name} has" if not reference.keys else "it names"
        message = f"a foreign key of {len(reference.fields)}, but {message} {len(keys)}"
        raise SquallError("SQ2007", message, reference.span, f"write REFERENCES {name} (…) with as many columns")


def check_view(catalog: Catalog, view: ViewDefinition, evaluate: Evaluate) -> Node:
    """Bind a view once, so that its mistakes are reported even if no query uses it."""
    from squallpy.logical.bind.context import Context
    from squallpy.logical.bind.from_clause import bind_view

    return bind_view(Context(catalog, view.query, evaluate=evaluate).rehearsal(), view)


def bind_top(catalog: Catalog, query: "SelectText", number: int, evaluate: Evaluate) -> Query:
    """Bind a query of the script."""
    from squallpy.logical.bind.context import Context
    from squallpy.logical.bind.select import bind_query, check_copies

    ctx = Context(catalog, query, evaluate=evaluate)
    plan = check_copies(ctx, query.ast, bind_query(ctx, query.ast))
    return Query(plan, tuple(column.name for column in plan.output), query.text, number)
