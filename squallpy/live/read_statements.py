"""Statements that only read what a session has: SELECT, SHOW, DESCRIBE, EXPLAIN, SUBSCRIBE."""

from typing import Protocol

import pyarrow as pa

from squallpy.base.errors import Span
from squallpy.frontend.query import SelectText
from squallpy.frontend.statements import Describe, Explain, Select, Show, Statement, Subscribe
from squallpy.live.definitions import Definitions
from squallpy.live.explain_query import explain_query, stage_of
from squallpy.live.outcome import Outcome
from squallpy.live.session_compiler import SessionCompiler
from squallpy.live.show import describe, show
from squallpy.live.subscription import Subscription


class Readable(Protocol):
    """A session, or the run of a script, as statements read it."""

    @property
    def known(self) -> Definitions: ...
    @property
    def compiler(self) -> SessionCompiler: ...

    def select(self, query: SelectText) -> pa.Table: ...
    def subscribe(self, name: str, with_snapshot: bool = False, *, span: Span | None = None) -> Subscription: ...


def read_statement(statement: Statement, session: Readable) -> Outcome | None:
    """Execute a statement that only reads; None for any other."""
    match statement:
        case Select(query):
            return Outcome("SELECT", session.select(query))
        case Show(what):
            return Outcome("SHOW", show(session.known, what))
        case Describe(name, span):
            return Outcome("DESCRIBE", describe(session.known.columns(name, span)))
        case Explain():
            known = session.known
            stage, (shown, queries) = stage_of(statement), known.explained(statement)
            text = explain_query(session.compiler.compiler(known.catalog, queries), shown, stage)
            return Outcome("EXPLAIN", text=text)
        case Subscribe(name, span, with_snapshot):
            return Outcome("SUBSCRIBE", subscription=session.subscribe(name, with_snapshot, span=span))
    return None
