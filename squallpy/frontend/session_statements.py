"""Statements that only a session has, as parsed by `grammar/script.lark`: DROP, ALTER, SHOW, DESCRIBE, EXPLAIN, …"""

from squallpy.base.errors import SquallError, nearest
from squallpy.frontend.ddl import relation_name, token_span
from squallpy.frontend.grammars import Parsed
from squallpy.frontend.query import read_query
from squallpy.frontend.source_text import ScriptText
from squallpy.frontend.statements import (
    CreateView,
    Describe,
    Drop,
    Explain,
    Pause,
    SessionStatement,
    Set,
    Show,
    Subscribe,
)
from squallpy.frontend.string_literals import unquote

SHOWN = ("streams", "tables", "views", "sinks", "functions", "queries", "settings")


def session_statement(script: ScriptText, tree: Parsed) -> SessionStatement | CreateView:
    """Read a statement that is neither a declaration nor a query."""
    span = script.span(tree.meta.start_pos, tree.meta.end_pos)
    match tree.data, tree.children:
        case "drop", [kind, if_exists, name, cascade]:
            words = " ".join(str(word).upper() for word in kind.children if word)
            at = token_span(script, name.children[-1])
            return Drop(words, relation_name(script, name), at, if_exists is not None, cascade is not None)
        case "alter", [materialized, name, body]:
            at = token_span(script, name.children[-1])
            query = read_query(script, body)
            return CreateView(relation_name(script, name), (), query, at, materialized is not None, alters=True)
        case "show", [what]:
            if str(what).lower() not in SHOWN:
                known = [word.upper() for word in SHOWN]
                raise SquallError("SQ1001", f"SHOW {what}", token_span(script, what), nearest(str(what).upper(), known))
            return Show(str(what).lower(), span)
        case "describe", [name]:
            return Describe(relation_name(script, name), token_span(script, name.children[-1]))
        case "explain", [stage, what]:
            written = str(stage).lower() if stage else ""
            if what.data == "query":
                return Explain(written, "", read_query(script, what), span)
            return Explain(written, relation_name(script, what), None, token_span(script, what.children[-1]))
        case "subscribe", [name, snapshot]:
            at = token_span(script, name.children[-1])
            return Subscribe(relation_name(script, name), at, snapshot is not None)
        case "set", [name, value]:
            text = value.children[0]
            given = unquote(text) if text.startswith("'") else str(text)
            return Set(".".join(str(part) for part in name.children), given, span)
    return Pause(tree.data == "resume", span)
