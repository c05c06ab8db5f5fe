"""Parsing of one query to sqlglot's AST, with positions in the script."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from squallpy.base.errors import Span, SquallError
from squallpy.base.records import dataclass
from squallpy.base.sqlglot_sources import check_sources
from squallpy.frontend.source_text import ScriptText
from squallpy.frontend.string_literals import with_double_quotes

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

    from squallpy.frontend.dialect import Squall
    from squallpy.frontend.grammars import Parsed


@dataclass(frozen=True)
class SelectText:
    """A query of a script: its AST, and the way from nodes of the AST back to the text."""

    script: ScriptText
    start: int
    end: int
    ast: "exp.Expr"

    @property
    def text(self) -> str:
        return self.script.text[self.start : self.end]

    @cached_property
    def tokens(self) -> list[Any]:
        return tokenize(self.text)

    def span(self, node: "exp.Expr") -> Span:
        """Find the place of a node: its own, else from its first descendant to its last, else its nearest
        ancestor's."""
        own = place(node)
        while own is None and node.parent is not None:
            node = node.parent
            own = place(node)
        start, end = own or (0, 1)
        return self.script.span(self.start + start, self.start + end)

    def find_token(self, node: "exp.Expr") -> Span:
        """Find the place of the token that made a node, without its descendants."""
        if "start" not in node.meta:
            return self.span(node)
        return self.script.span(self.start + node.meta["start"], self.start + node.meta["end"] + 1)

    def keyword(self, node: "exp.Expr", word: str) -> Span:
        """Find the place of a node's keyword: just before the node, else the last one up to its end, else the node."""
        start, end = place(node) or place(node.parent) or (0, len(self.text))
        lead = [t for t in self.tokens if t.start < start][-3:]
        same = [t for t in self.tokens if t.text.upper().split()[:1] == [word]]
        near, within = [t for t in lead if t in same], [t for t in same if t.start < end]
        if not same:
            return self.span(node)
        token = (near or within or same[:1])[-1]
        return self.script.span(self.start + token.start, self.start + token.end + 1)

    def words(self, node: "exp.Expr") -> str:
        """Write a node as SQL text, the name of an unnamed column."""
        return node.sql(dialect="squall", comments=False)


def place(node: "exp.Expr | None") -> tuple[int, int] | None:
    """Find the offsets in the query, end exclusive, of a node and its descendants."""
    if node is None:
        return None
    marks = [n.meta for n in node.walk() if n._meta and "start" in n._meta]
    if not marks:
        return None
    return min(m["start"] for m in marks), max(m["end"] for m in marks) + 1


def _dialect() -> "Squall":
    from sqlglot import parser

    from squallpy.frontend.dialect import Squall

    check_sources(parser)
    return Squall()


def tokenize(text: str) -> list[Any]:
    return _dialect().tokenize(text)


def parse_select(script: ScriptText, start: int, end: int) -> SelectText:
    """Parse script[start:end]; raises SQ1001 where sqlglot cannot go on, SQ3001 if it is not a query."""
    from squallpy.frontend.window_clause import with_windows

    return _parse(script, start, end, with_windows)


def _parse(script: ScriptText, start: int, end: int, read: "Callable[[list[Token], str], list[Token]]") -> SelectText:
    """Parse script[start:end], whose tokens are read in some way before sqlglot has them."""
    from sqlglot.errors import ParseError, TokenError

    text = script.text[start:end]
    try:
        dialect = _dialect()
        tokens = read(with_double_quotes(dialect.tokenize(text), text), text)
        refuse_empty_names(script, start, tokens)
        trees = [tree for tree in dialect.parser().parse(tokens, text) if tree is not None]
    except TokenError as error:
        at = error.start if error.start is not None else 0
        raise SquallError("SQ1001", "a string, name or number that does not end", script.span(start + at)) from None
    except ParseError as error:
        raise parse_error(script, start, end, error) from None
    assert len(trees) == 1, "one query has no semicolon"
    query = SelectText(script, start, end, with_predicates(with_upper_words(trees[0])))
    refuse_stray_commas(query)
    return query


def read_returned(script: ScriptText, start: int, end: int) -> SelectText:
    """Parse script[start:end], RETURN expression, as the SELECT of one item; SQ1001 for anything behind it."""
    from sqlglot.tokenizer_core import Token, TokenType

    def as_select(tokens: list[Token], text: str) -> list[Token]:
        first = tokens[0]
        return [Token(TokenType.SELECT, "SELECT", first.line, first.col, first.start, first.end), *tokens[1:]]

    returned = _parse(script, start, end, as_select)
    select = returned.ast
    if len(select.expressions) != 1 or any(value for name, value in select.args.items() if name != "expressions"):
        told, hint = "a function returns one expression", "write RETURN and an expression of the parameters"
        raise SquallError("SQ1001", told, script.span(start, end), hint)
    return returned


def tables_read(query: SelectText) -> set[str]:
    """Collect the names that a query reads in FROM, and in TABLE(…), in lower case, and of functions as f()."""
    from sqlglot import exp

    from squallpy.catalog.catalog import qualify_name
    from squallpy.catalog.functions import signature

    found = set[str]()
    for node in query.ast.walk():
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not _is_of_with(node):
            found.add(qualify_name(node.db, node.name).lower())
        if isinstance(node, exp.Anonymous) and node.name.upper() == "TABLE":
            columns = (each for each in node.expressions if isinstance(each, exp.Column))
            found |= {qualify_name(column.table, column.name).lower() for column in columns}
        elif isinstance(node, exp.Anonymous):
            found.add(signature(node.name))
    return found


def _is_of_with(table: "exp.Table") -> bool:
    """True if a table is one of a WITH around it, of which those see the ones before them, and in RECURSIVE all."""
    from sqlglot import exp

    if table.db:
        return False
    node: exp.Expr = table
    inside: exp.Expr | None = None
    while parent := node.parent:
        inside = node if isinstance(node, exp.CTE) else inside
        if isinstance(block := parent.args.get("with_"), exp.With):
            tables = block.expressions
            if node is block and not block.recursive:
                tables = tables[: next(n for n, each in enumerate(tables) if each is inside)]
            if table.name.lower() in {each.alias.lower() for each in tables}:
                return True
        node = parent
    return False


def read_query(script: ScriptText, tree: "Parsed") -> SelectText:
    """Parse the query of a `query` node."""
    return parse_select(script, *extent(tree.children[0]))


def extent(token: "Parsed") -> tuple[int, int]:
    """Return where a token of a script begins, and where it ends without the blanks behind it."""
    return token.start_pos, token.start_pos + len(token.rstrip())


def refuse_empty_names(script: ScriptText, start: int, tokens: list[Any]) -> None:
    """Raise SQ1001 for a quoted name without a character, which sqlglot takes for no name in some places."""
    for token in tokens:
        if token.token_type.name == "IDENTIFIER" and not token.text.strip():
            span = script.span(start + token.start, start + token.end + 1)
            raise SquallError("SQ1001", "a name in quotes that is empty", span, "write a name between them")


def with_upper_words(tree: "exp.Expr") -> "exp.Expr":
    """Write the keywords that sqlglot keeps as they were written in upper case: what compares them need not ask.

    ROWS BETWEEN 1 preceding AND …   →   WindowSpec(kind="ROWS", start_side="PRECEDING", …)
    """
    from sqlglot import exp

    for node in tree.walk():
        if not isinstance(node, exp.Identifier | exp.Literal | exp.Anonymous):  # which are names and texts
            for key, value in node.args.items():
                if isinstance(value, str):
                    node.set(key, value.upper())
    return tree


def with_predicates(tree: "exp.Expr") -> "exp.Expr":
    """Turn EXISTS ((SELECT …) UNION …) and < ALL ((SELECT …) …), which sqlglot takes for calls, into predicates."""
    from sqlglot import exp

    kinds = {"EXISTS": exp.Exists, "ANY": exp.Any, "SOME": exp.Any, "ALL": exp.All}
    for call in [*tree.find_all(exp.Anonymous)]:
        kind = kinds.get(call.name.upper())
        if kind and len(call.expressions) == 1 and isinstance(call.expressions[0], exp.Query):
            predicate = kind(this=call.expressions[0])
            predicate.meta.update(call.meta)
            call.replace(predicate)
    return tree


CLOSING = ("FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", ")", ",")


def refuse_stray_commas(query: SelectText) -> None:
    """Raise SQ1001 for a comma that nothing follows: sqlglot forgives `SELECT a, FROM r`, Spark does not."""
    names = ("STRING", "IDENTIFIER")
    words = ("" if t.token_type.name in names else " ".join(t.text.upper().split()) for t in query.tokens[1:])
    following = [*words, ")"]
    for token, word in zip(query.tokens, following, strict=True):
        if token.text == "," and token.token_type.name == "COMMA" and word in CLOSING:
            span = query.script.span(query.start + token.start)
            raise SquallError("SQ1001", "a comma that nothing follows", span, "remove it")


def parse_error(script: ScriptText, start: int, end: int, error: Any) -> SquallError:
    """Convert sqlglot's error to ours, at the token that it could not take."""
    first = error.errors[0]
    word, lead = first.get("highlight") or "", first.get("start_context") or ""
    text = script.text[start:]
    # NB: sqlglot gives the line and the column of the token's last character, both from 1
    lines = text.split("\n")[: first["line"] - 1]
    last = sum(len(line) + 1 for line in lines) + first["col"]
    begin = max(0, last - max(1, len(word)))
    if text[begin:last] != word:
        begin = text.find(lead + word) + len(lead)
    span = script.span(start + begin, start + begin + max(1, len(word)))
    told = first["description"] or ""
    if last >= len(text[: end - start].rstrip()) and told.startswith(("Req", "Exp")):
        return SquallError("SQ1001", "the query ends too early", span, hint_of(told) if told.startswith("Exp") else "")
    message = f'unexpected "{word}"' if word else "syntax error"
    return SquallError("SQ1001", message, span, hint_of(told))


def hint_of(description: str) -> str:
    """Convert sqlglot's description to a hint."""
    text = description.partition(" but got")[0].strip().rstrip(".")
    if text.startswith("Invalid expression / Unexpected token"):
        return ""
    if text.startswith("Required keyword"):
        return "expected an expression before it"
    return text[:1].lower() + text[1:]
