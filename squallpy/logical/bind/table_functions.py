"""Table functions over streams: the matrices and the program that a query asks for where it reads them.

SELECT * FROM matrix_power(TABLE(edges), 16)
→   CREATE MATRIX edges_cells (edges_n, edges_n) FROM STREAM edges (src, dst, weight);
    CREATE MATRIX PROGRAM matrix_power_edges_16 AS $$ R := edges_cells^16 $$;
    SELECT * FROM matrix_power_edges_16.R
"""

import re
from collections.abc import Callable, Collection
from functools import cached_property

from sqlglot import exp

from squallpy.base.errors import Span, SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.catalog.catalog import Catalog, ViewDefinition, qualify_name
from squallpy.catalog.matrices import Matrix, MatrixProgramDefinition
from squallpy.catalog.relation import Relation
from squallpy.frontend.query import SelectText
from squallpy.frontend.source_text import ScriptText
from squallpy.frontend.statements import Body, CreateMatrix, CreateProgram
from squallpy.frontend.window_clause import CLAUSE
from squallpy.functions.graph_functions import DAMPING, GRAPHS, MOST_STEPS, STEPS, GraphFunction, pagerank
from squallpy.logical.bind.estimates import estimate
from squallpy.logical.bind.literals import read_number
from squallpy.logical.bind.matrix_ddl import Outputs, bind_matrix, bind_program
from squallpy.logical.bind.table_arguments import TableArguments


def expand(catalog: Catalog, query: SelectText, outputs: Outputs | None) -> bool:
    """Declare what table functions of a query stand for, and have it read that instead; returned is whether there are
    any."""
    found, common = False, {cte.alias.lower() for cte in query.ast.find_all(exp.CTE)}
    views = common.union(name for name, entry in catalog.entries.items() if isinstance(entry, ViewDefinition))
    for node in list(query.ast.find_all(exp.Table)):
        name = node.this.name.lower() if isinstance(node.this, exp.Anonymous) else ""
        if name in FUNCTIONS and outputs and not (name == "ols" and is_join(node.this, views)):
            read = FUNCTIONS[name](TableFunctionCall(catalog, query, outputs, name, node.this))
            alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
            read.set("alias", alias)
            node.replace(read)
            found = True
    return found


@dataclass(frozen=True)
class TableFunctionCall:
    """A call of a table function in a query."""

    catalog: Catalog
    query: SelectText
    outputs: Outputs
    name: str
    node: exp.Anonymous

    @property
    def span(self) -> Span:
        return self.query.span(self.node)

    def error(self, code: str, message: str, hint: str = "") -> SquallError:
        return SquallError(code, message, self.span, hint)

    @property
    def inner(self) -> exp.Expr | None:
        """The column or query inside of TABLE(…), its first argument; None if that is something else."""
        return _inside_table(self.node)

    def relation(self) -> tuple[Relation, tuple[str, ...]]:
        """Resolve what it reads, and which columns: all, or those that TABLE(SELECT … FROM …) names."""
        inner = self.inner
        match inner:
            case exp.Column():
                found = self._relation(qualify_name(inner.table, inner.name))
                return found, tuple(field.name for field in found.fields)
            case exp.Select() if _is_plain(inner):
                table = next(inner.find_all(exp.Table))
                found = self._relation(qualify_name(table.db, table.name))
                return found, tuple(self._field(found, column.name) for column in inner.expressions)
        hint = "write TABLE(name), or TABLE(SELECT source, target, weight FROM name)"
        if isinstance(inner, exp.Select) and inner.args.get(CLAUSE) is not None:
            raise self.error("SQ2005", f"{self.name} reads a stream as it is, without a window", hint)
        raise self.error("SQ2005", f"{self.name} reads columns of one stream or table", hint)

    def _field(self, relation: Relation, name: str) -> str:
        """Find a column; returned is its name as it is declared."""
        field = relation.field(name)
        if field is None:
            hint = nearest(name, [field.name for field in relation.fields])
            raise self.error("SQ2003", f'"{relation.name}" has no column "{name}"', hint)
        return field.name

    def _relation(self, name: str) -> Relation:
        entry = self.catalog.entries.get(name.lower())
        if not isinstance(entry, Relation):
            raise self.error("SQ2001", f'unknown stream or table "{name}"', nearest(name, self.catalog.relations))
        return entry

    @cached_property
    def arguments(self) -> TableArguments:
        """The arguments behind TABLE(…)."""

        def refuse(code: str, message: str, node: exp.Expr, hint: str) -> SquallError:
            return SquallError(code, message, self.query.span(node), hint)

        return TableArguments(refuse, self.node)

    def steps(self, argument_name: str, default: int | None = None) -> int:
        argument = self.arguments.take("steps")
        if argument is None and default is not None:
            return default
        text = argument.name if isinstance(argument, exp.Literal) and not argument.is_string else ""
        if not text.isdigit() or int(text) > MOST_STEPS:
            given = argument.sql("spark") if argument else "missing"
            raise self.error("SQ2012", f"{argument_name} is {given}", f"it is a number from 0 to {MOST_STEPS}")
        return int(text)

    def read_fraction(self, argument_name: str, default: float) -> float:
        argument = self.arguments.take(argument_name)
        if argument is None:
            return default
        number = read_number(argument)
        if number is not None and number <= 1:
            return number
        raise self.error("SQ2012", f"a {argument_name} of {argument.sql('spark')}", "it is a number from 0 to 1")

    def declare(self, name: str, semiring: str, text: str) -> exp.Table:
        """Declare a program of one output, R; returned is the table that reads it."""
        program = MatrixProgramDefinition(name, semiring, Body(ScriptText(text, name), 0, len(text)), (), self.span)
        self.catalog.declare_implied(bind_program(self.catalog, CreateProgram(program, self.span), self.outputs))
        return exp.Table(this=exp.to_identifier("R"), db=exp.to_identifier(name))


def edges(call: TableFunctionCall, cells: str, shares: bool = False) -> tuple[str, Matrix]:
    """Make the matrix of edges, given as rows of from, to and perhaps a weight; returned with a label for what is made
    of it."""
    relation, columns = call.relation()
    if len(columns) < 2:
        message = (
            f"{call.name} reads edges: from, to, and perhaps what they weigh; {relation.name} has {len(columns)} column"
        )
        raise call.error("SQ2005", message)
    columns = columns[:3]
    label = _label(relation.name, *(columns if columns != _edge_fields(relation) else ()))
    matrix = Matrix(
        f"{label}_{cells}", f"{label}_n", f"{label}_n", relation.name, relation.stream, columns, (), call.span,
        shares=shares,
    )  # fmt: skip
    call.catalog.declare_implied(bind_matrix(call.catalog, CreateMatrix(matrix, (call.span,) * (1 + len(columns)))))
    return label, matrix


def graph(call: TableFunctionCall, function: GraphFunction) -> exp.Expr:
    """Declare a program over edges."""
    (label, matrix), steps = edges(call, "cells"), call.steps(function.called)
    call.arguments.done("steps")
    text = function.write_script(matrix.name, str(matrix.rows), steps)
    table = call.declare(f"{call.name}_{label}_{steps}", function.semiring, text)
    return exp.Subquery(this=_select(table, "i", "j")) if function.pairs else table


def ranks(call: TableFunctionCall) -> exp.Expr:
    """Declare a program over shares of edges."""
    (label, matrix), damping = edges(call, "shares", shares=True), call.read_fraction("damping", DAMPING)
    steps = call.steps("the number of steps", STEPS)
    call.arguments.done("damping", "steps")
    name = f"pagerank_{label}_{str(damping).replace('.', '_')}_{steps}"
    table = call.declare(name, "arithmetic", pagerank(matrix.name, str(matrix.rows), damping, steps))
    return exp.Subquery(this=_select(table, "i", "value"))


def least_squares(call: TableFunctionCall) -> exp.Expr:
    """Declare a regression on all other columns that are numbers, and on 1 if an intercept is asked for.

    What rows add to X'X and X'y are products of their columns.
    """
    relation, columns = call.relation()
    types = {name: field.type for name in columns if (field := relation.field(name))}
    numbers = [name for name, type in types.items() if type.is_numeric]
    named = call.node.expressions[0].find(exp.Select)
    if named is not None and (others := [name for name in types if name not in numbers]):
        told = f'ols is of numbers, "{others[0]}" is {types[others[0]]}'
        raise call.error("SQ2002", told, "leave it out of the SELECT list")
    label = call.arguments.read_label(call.arguments.take("label"), numbers)
    titles = dict(zip(columns, (each.name for each in named.expressions), strict=True)) if named is not None else {}
    with_one = call.arguments.read_flag("intercept", call.arguments.take("intercept"))
    call.arguments.done("label", "intercept", "ridge", "solver")
    answer = next((name for name in numbers if name.lower() == label.lower()), None)
    if answer is None:
        hint = nearest(label, numbers)
        raise call.error("SQ2003", f'"{relation.name}" has no column "{label}" of numbers', hint)
    features = [*([""] if with_one else []), *(name for name in numbers if name != answer)]
    if with_one and "intercept" in (titles.get(name, name) for name in features):
        raise call.error("SQ2007", 'ols would have two features "intercept"', "rename the column")
    if not features:
        raise call.error("SQ2005", f'"{relation.name}" has no numbers but "{answer}"')
    count, known = len(features), [name for name in features if name]
    are_all = numbers == [field.name for field in relation.fields if field.type.is_numeric]
    name = _label(
        "ols", relation.name, answer, *(["1"] if with_one else []), *([] if are_all and not with_one else known)
    )
    for kind, right in (("squares", features), ("products", [answer])):
        matrix = Matrix(
            f"{name}_{kind}", count, len(right), relation.name, relation.stream,
            (*known, answer), ("SYMMETRIC",) * (right is features), call.span,
            (tuple(features), tuple(right)),
        )  # fmt: skip
        call.catalog.declare_implied(matrix)
    table = call.declare(name, "arithmetic", f"S := inv({name}_squares); R := S * {name}_products")
    solved = exp.Table(
        this=exp.to_identifier("S"), db=table.args["db"].copy(), alias=exp.TableAlias(this=exp.to_identifier("s"))
    )
    table.set("alias", exp.TableAlias(this=exp.to_identifier("r")))
    case = exp.Case()
    for number, feature in enumerate(features):
        case = case.when(
            exp.column("i", "s").eq(number), exp.Literal.string(titles.get(feature, feature) or "intercept")
        )
    # NB: cells that are 0 are not there, but for a solution the inverse has no 0 on its diagonal
    zero = exp.cast(exp.Literal.number("0"), "DOUBLE")
    value = exp.Anonymous(this="COALESCE", expressions=[exp.column("value", "r"), zero])
    read = exp.Select().select(exp.alias_(case, "feature"), exp.alias_(value, "coefficient")).from_(solved)
    read = read.join(table, on=exp.column("i", "r").eq(exp.column("i", "s")), join_type="left")
    return exp.Subquery(this=read.where(exp.column("i", "s").eq(exp.column("j", "s"))))


def is_join(call: exp.Anonymous, views: Collection[str]) -> bool:
    """True if a regression is over a join or a view, or has options that the matrix program of one relation lacks."""
    inner = _inside_table(call)
    named = {arg.this.name.lower() for arg in call.expressions if isinstance(arg, exp.Kwarg)}
    if (
        named - {"label", "intercept"}
        or len(call.expressions) > 3
        or (isinstance(inner, exp.Select) and not _is_plain(inner))
    ):
        return True
    table = inner if isinstance(inner, exp.Column) else inner.find(exp.Table) if isinstance(inner, exp.Select) else None
    return table is not None and table.name.lower() in views


def _select(table: exp.Table, *names: str) -> exp.Select:
    return exp.Select().select(*map(exp.column, names)).from_(table)


def _inside_table(call: exp.Anonymous) -> exp.Expr | None:
    """Return what is inside of TABLE(…), the first argument of a call; None if that is something else."""
    first = call.expressions[0] if call.expressions else None
    is_table = isinstance(first, exp.Anonymous) and first.name.upper() == "TABLE" and len(first.expressions) == 1
    return first.expressions[0] if is_table and first is not None else None


def _is_plain(query: exp.Select) -> bool:
    """True if a query selects columns of one table, and does nothing else."""
    parts = {name for name, part in query.args.items() if part and name not in ("expressions", "from_", "kind")}
    tables = list(query.find_all(exp.Table))
    return not parts and len(tables) == 1 and all(isinstance(column, exp.Column) for column in query.expressions)


def _label(*parts: str) -> str:
    """Join names to one that needs no quotes in a matrix program: r.s, a b → r_s_a_20_b."""
    words = (re.sub(r"[^\w.]", lambda found: f"_{ord(found[0]):x}_", part).replace(".", "_") for part in parts)
    label = "_".join(words)
    return f"_{label}" if label[0].isdigit() else label


def _edge_fields(relation: Relation) -> tuple[str, ...]:
    return tuple(field.name for field in relation.fields[:3])


FUNCTIONS: dict[str, Callable[[TableFunctionCall], exp.Expr]] = {
    **{name: (lambda call, function=function: graph(call, function)) for name, function in GRAPHS.items()},  # type: ignore[misc]
    "estimate": estimate,
    "ols": least_squares,
    "pagerank": ranks,
}
