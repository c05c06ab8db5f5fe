"""Pipes: a query, and operators that each read what comes before, as queries around queries.

    FROM r |> WHERE a > 1 |> AGGREGATE SUM(b) AS s GROUP BY c |> ORDER BY s DESC |> LIMIT 3
    →   SELECT * FROM (SELECT c, SUM(b) AS s FROM r WHERE a > 1 GROUP BY c) ORDER BY s DESC LIMIT 3

Names of tables last until an operator makes other columns. Source: J. Shute et al., *SQL Has Problems. We Can Fix Them:
Pipe Syntax In SQL*, VLDB 2024; as in Spark 4.
"""

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

_OPEN = ("expressions", "from_", "joins", "laterals", "where")
"""The parts of a SELECT * to which an operator may add another instead of reading it as a whole."""
_LAST = (TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH)
_EXPECTED = "Expected SELECT, EXTEND, SET, DROP, AS, WHERE, AGGREGATE, JOIN, ORDER BY, LIMIT, UNION or another operator"


class PipeParser(SparkParser):
    """Spark's parser, with pipes of its own: sqlglot's know fewer operators, and read some wrongly."""

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query:
        while self._match(TokenType.PIPE_GT):
            query = self._parse_pipe_operator(query)
        return query

    def _parse_pipe_operator(self, query: exp.Query) -> exp.Query:
        """Parse one operator over a query."""
        if self._match(TokenType.SELECT, advance=False):
            select = self._parse_select(parse_set_operation=False, consume_pipe=False)
            assert isinstance(select, exp.Select)
            if select.args.get("from_"):
                self.raise_error("Expected no FROM in SELECT after |>")
            return _with(_reading(query), **{part: each for part, each in select.args.items() if each})
        if self._match_text_seq("EXTEND"):
            return _with(_reading(query), expressions=[exp.Star(), *self._parse_expressions()])
        if self._match(TokenType.SET):
            replaced = self._parse_csv(self._parse_assigned)
            return _with(_reading(query), expressions=[exp.Star(replace=replaced)])
        if self._match(TokenType.DROP):
            dropped = self._parse_csv(self._parse_column)
            return _with(_reading(query), expressions=[exp.Star(except_=dropped)])
        if self._match(TokenType.ALIAS):
            return _around(query, alias=exp.TableAlias(this=self._parse_id_var()))
        if self._match_text_seq("AGGREGATE"):
            return self._parse_pipe_aggregate(query)
        if self._match(TokenType.DISTINCT):
            return _with(_reading(query), distinct=exp.Distinct())
        if self._match_texts(("PIVOT", "UNPIVOT"), advance=False):
            return _around(query, pivots=self._parse_pivots())
        if self._match(TokenType.TABLE_SAMPLE, advance=False):
            return _around(query, sample=self._parse_table_sample())
        if self._match(TokenType.WHERE, advance=False):
            reading, where = _reading(query), self._parse_where()
            before = reading.args.get("where")
            both = exp.and_(before.this, where.this, copy=False) if before and where else where and where.this
            return _with(reading, where=exp.Where(this=both))
        start = self._index
        found: exp.Expr | None
        if self._match_set(_LAST, advance=False) and not (query.args.get("limit") or query.args.get("offset")):
            found = self._parse_query_modifiers(query)
        else:
            found = self._parse_set_operations(query)
            if found is query:
                found = self._parse_query_modifiers(_joinable(query))
        if self._index == start:
            self.raise_error(_EXPECTED)
        assert isinstance(found, exp.Query)
        return found

    def _parse_assigned(self) -> exp.Expr:
        name = self._parse_column()
        if name is None or not self._match(TokenType.EQ):
            self.raise_error("Expected a column, = and its value")
        return self.expression(exp.Alias(this=self._parse_disjunction(), alias=name))

    def _parse_pipe_aggregate(self, query: exp.Query) -> exp.Select:
        """Parse what follows AGGREGATE: aggregates, and what they are grouped by, each perhaps with a name."""
        aggregates = [] if self._match(TokenType.GROUP_BY, advance=False) else self._parse_expressions()
        keys = self._parse_expressions() if self._match(TokenType.GROUP_BY) else []
        if not aggregates and not keys:
            self.raise_error("Expected an aggregate, or GROUP BY")
        group = exp.Group(expressions=[key.unalias().copy() for key in keys]) if keys else None
        return _with(_reading(query), expressions=[*keys, *aggregates], group=group)


def _reading(query: exp.Query) -> exp.Select:
    """Make a SELECT * that reads a query: itself if it is one without more than FROM, joins and WHERE."""
    if isinstance(query, exp.Select) and not any(
        part for name, part in query.args.items() if part and name not in _OPEN
    ):
        match query.expressions:
            case [exp.Star() as star] if not any(star.args.values()):
                return query
    return _around(query)


def _joinable(query: exp.Query) -> exp.Select:
    """Make a SELECT * that reads a query and may be joined: WHERE is asked before, of one source under its own name."""
    reading = _reading(query)
    if reading is not query or not reading.args.get("where"):
        return reading
    source = reading.args["from_"].this
    if any(reading.args.get(part) for part in ("joins", "laterals")) or not source.alias_or_name:
        return _around(query)
    called = source.args["alias"].this if source.args.get("alias") else source.this
    return _around(query, alias=exp.TableAlias(this=called.copy()))


def _around(query: exp.Query, **parts: exp.Expr | Sequence[exp.Expr] | None) -> exp.Select:
    """Make SELECT * FROM (query) with an alias, pivots or a sample."""
    inner = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
    for part, value in parts.items():
        inner.set(part, value)
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=inner))


def _with(select: exp.Select, **parts: exp.Expr | Sequence[exp.Expr] | None) -> exp.Select:
    for part, value in parts.items():
        select.set(part, value)
    return select
