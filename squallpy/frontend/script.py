"""Parsing of a script to its statements."""

from dataclasses import replace
from typing import TYPE_CHECKING

from squallpy.base.errors import Span, SquallError
from squallpy.catalog.matrices import Matrix, MatrixProgramDefinition
from squallpy.catalog.variable_orders import OrderText
from squallpy.frontend.ddl import declare, name_of, read_type, relation_name, token_span
from squallpy.frontend.grammars import Parsed, display_name, load_grammar
from squallpy.frontend.query import extent, read_returned
from squallpy.frontend.query import read_query as query
from squallpy.frontend.session_statements import session_statement
from squallpy.frontend.sink_ddl import read_sink
from squallpy.frontend.source_text import START, ScriptText, SourcePosition, with_backslashes, word_at
from squallpy.frontend.statements import (
    Body,
    CreateFunction,
    CreateMatrix,
    CreateOrder,
    CreateProgram,
    CreateRelation,
    CreateSink,
    CreateView,
    Existing,
    Select,
    Statement,
)
from squallpy.frontend.unsupported import STATEMENTS

if TYPE_CHECKING:
    from lark import Lark, Token, UnexpectedInput


def parse_script(text: str, file: str, position: SourcePosition = START) -> list[Statement]:
    """Parse the statements of a script in order; raises SquallError (SQ1001, SQ3001, …) at the first mistake.

    CREATE STREAM r (a INT) USING csv OPTIONS (path 'r'); SELECT a FROM r;   →   [CreateRelation, Select]

    Args:
        position: Where the text begins in the file.
    """
    from lark import UnexpectedInput

    text = with_backslashes(text)
    script = ScriptText(text, file, position)
    parser = load_grammar("script")
    try:
        tree: Parsed = parser.parse(text)
    except UnexpectedInput as error:
        raise syntax_error(script, parser, error) from None
    return [statement(script, child) for child in tree.children]


def statement(script: ScriptText, tree: Parsed) -> Statement:
    match tree.data:
        case "create_relation":
            return create_relation(script, tree)
        case "create_view":
            return create_view(script, tree)
        case "create_sink":
            return create_sink(script, tree)
        case "create_function":
            return create_function(script, tree)
        case "create_matrix":
            return create_matrix(script, tree)
        case "create_program":
            return create_program(script, tree)
        case "create_order":
            return create_order(script, tree)
        case "query":
            return Select(query(script, tree))
    return session_statement(script, tree)


def existing(replaces: Parsed | None, keeps: Parsed | None, span: Span) -> Existing:
    """Read OR REPLACE and IF NOT EXISTS; SQ1001 for both."""
    if replaces and keeps:
        raise SquallError("SQ1001", "OR REPLACE and IF NOT EXISTS contradict each other", span, "leave one out")
    return Existing.REPLACE if replaces else Existing.KEEP if keeps else Existing.REFUSE


def create_relation(script: ScriptText, tree: Parsed) -> CreateRelation:
    replaces, _, keeps, *_ = tree.children
    created = declare(script, tree)
    return replace(created, existing=existing(replaces, keeps, created.span))


def create_view(script: ScriptText, tree: Parsed) -> CreateView:
    replaces, materialized, keeps, name, columns, body = tree.children
    names = tuple(name_of(n) for n in columns.children) if columns else ()
    if len({n.lower() for n in names}) < len(names):
        raise SquallError("SQ2007", "a column is named twice", token_span(script, columns.children[0].children[0]))
    span = token_span(script, name.children[-1])
    return CreateView(
        relation_name(script, name), names, query(script, body), span, materialized is not None,
        existing(replaces, keeps, span),
    )  # fmt: skip


def create_sink(script: ScriptText, tree: Parsed) -> CreateSink:
    replaces, keeps, name, format, options, body = tree.children
    span = token_span(script, name.children[-1])
    sink = read_sink(script, relation_name(script, name), span, format, options)
    return CreateSink(sink, query(script, body), existing(replaces, keeps, span))


def create_function(script: ScriptText, tree: Parsed) -> CreateFunction:
    replaces, keeps, name, parameters, returns, *_, returned = tree.children
    names, types = parameters.children[::2], parameters.children[1::2]
    span = token_span(script, name)
    return CreateFunction(
        str(name),
        tuple((name_of(each), read_type(script, type)) for each, type in zip(names, types, strict=True)),
        read_type(script, returns),
        _body(script, returned) if returned.type == "BODY" else read_returned(script, *extent(returned)),
        span,
        tuple(token_span(script, each.children[0]) for each in names),
        existing(replaces, keeps, span),
    )


def create_matrix(script: ScriptText, tree: Parsed) -> CreateMatrix:
    name, dimensions, known, kind, source, columns = tree.children
    span = token_span(script, name.children[0])
    rows, cols = (int(d) if d.isdigit() else str(d) for d in dimensions.children)
    if not 2 <= len(columns.children) <= 3:
        raise SquallError("SQ2005", f"{len(columns.children)} columns of a matrix", span, "name row, column and value")
    stream = kind.children[0].type == "STREAM"
    words = dict.fromkeys(str(word).upper() for word in known.children)
    facts = tuple(word for word in words if word != "SHARES")
    named = tuple(name_of(column) for column in columns.children)
    spans = tuple(token_span(script, token.children[-1]) for token in (source, *columns.children))
    matrix = Matrix(
        name_of(name), rows, cols, relation_name(script, source), stream, named, facts, span, shares="SHARES" in words
    )
    return CreateMatrix(matrix, spans)


def create_program(script: ScriptText, tree: Parsed) -> CreateProgram:
    name, over, body = tree.children
    semiring = name_of(over).lower() if over else "arithmetic"
    span = token_span(script, name.children[0])
    program = MatrixProgramDefinition(name_of(name), semiring, _body(script, body), (), span)
    return CreateProgram(program, token_span(script, over.children[0]) if over else None)


def create_order(script: ScriptText, tree: Parsed) -> CreateOrder:
    name, body = tree.children
    return CreateOrder(OrderText(name_of(name), _body(script, body), token_span(script, name.children[0])))


def _body(script: ScriptText, token: "Token") -> Body:
    """Return the text between $$ and $$."""
    assert token.start_pos is not None and token.end_pos is not None
    return Body(script, token.start_pos + 2, token.end_pos - 2)


def syntax_error(script: ScriptText, parser: "Lark", error: "UnexpectedInput", end: int | None = None) -> SquallError:
    """Describe the offending word and what was expected in its place; the text may `end` before the script's."""
    from lark import UnexpectedCharacters, UnexpectedToken

    expected: set[str] = set()
    text = script.text[:end]
    start = len(text.rstrip())
    if isinstance(error, UnexpectedCharacters):
        expected, start = set(error.allowed or ()), error.pos_in_stream or 0
    elif isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        start = error.pos_in_stream if error.token.type != "$END" and error.pos_in_stream is not None else start
    word = word_at(text, start).strip()
    span = script.span(start, start + max(1, len(word)))
    if word.upper() in STATEMENTS and "QUERY" in expected:
        return SquallError("SQ3001", f"{word.upper()} is not supported", span, STATEMENTS[word.upper()])
    if word[:1] in ("'", '"', "`"):
        return SquallError("SQ1001", f"a {word[:1]} that is not closed, or not expected here", span)
    found = f'unexpected "{word}"' if word else "the script ends too early"
    wanted = sorted({w for name in expected if (w := display_name(parser, name))})
    return SquallError("SQ1001", found, span, f"expected {' or '.join(wanted)}" if wanted else "")
