"""Spark's SQL as sqlglot parses it, with every function call left as it was written.

sqlglot's own dialects normalise functions (`YEAR(x)` → `Year(TsOrDsToDate(x))`), which drops
arguments that it does not know. This one keeps name, arguments and position: `Anonymous(this="YEAR", expressions=[x])`.
"""

from collections.abc import Callable, Sequence
from typing import TypeGuard

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parser import binary_range_parser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from squallpy.frontend.json_arrows import COLUMN_OPERATORS
from squallpy.frontend.json_constructors import PARSERS as JSON_CONSTRUCTORS
from squallpy.frontend.pipe_syntax import PipeParser
from squallpy.frontend.window_clause import CLAUSE, WINDOW

OVER_TABLES = ("COFACTOR", "OLS", "MUTUAL_INFORMATION", "CHOW_LIU")
"""Table functions whose table may be partitioned."""
WINDOWING = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
"""Table functions by which rows have windows of time; the names are also those of keys of GROUP BY."""
KEPT = ("CAST", "TRY_CAST", "EXTRACT", "TRIM")
_BITWISE: tuple[tuple[TokenType, type[exp.Binary]], ...] = (
    (TokenType.PIPE, exp.BitwiseOr),
    (TokenType.CARET, exp.BitwiseXor),
    (TokenType.AMP, exp.BitwiseAnd),
)  # an operator binds less than those after it
_SHIFTS = (exp.BitwiseLeftShift, exp.BitwiseRightShift)


class WindowParser(PipeParser):
    """Spark's parser, which also takes the window of a block: a clause like LIMIT, one token by then."""

    QUERY_MODIFIER_PARSERS = {  # noqa: RUF012 - sqlglot's own way, here and below
        **SparkParser.QUERY_MODIFIER_PARSERS,
        WINDOW: lambda self: (CLAUSE, self._parse_window_token()),
    }
    QUERY_MODIFIER_TOKENS = set(QUERY_MODIFIER_PARSERS)  # noqa: RUF012
    STRING_PARSERS = {  # noqa: RUF012 - r'\d+' is a text like others, in which a backslash is one
        **SparkParser.STRING_PARSERS,
        TokenType.RAW_STRING: SparkParser.STRING_PARSERS[TokenType.STRING],
    }
    PRIMARY_PARSERS = {**SparkParser.PRIMARY_PARSERS, **STRING_PARSERS}  # noqa: RUF012

    COLUMN_OPERATORS = {**SparkParser.COLUMN_OPERATORS, **COLUMN_OPERATORS}  # noqa: RUF012
    BITWISE = {}  # noqa: RUF012 - see `_parse_bitwise`
    RANGE_PARSERS = {  # noqa: RUF012 - x ~ 'pattern' and x !~ 'pattern', as PostgreSQL and DuckDB write RLIKE
        **SparkParser.RANGE_PARSERS,
        TokenType.TILDE: binary_range_parser(exp.RegexpLike),
        TokenType.IRLIKE: lambda self, this: self._parse_match_without_case(this),
    }
    SUPPORTS_TABLE_QUERY = True  # TABLE r, which is SELECT * FROM r

    def _parse_statement(self) -> exp.Expr | None:
        """Parse VALUES (…), also in parentheses, as SELECT * FROM VALUES (…) where it is the query."""
        if self._match(TokenType.VALUES, advance=False):
            rows = self._parse_query_modifiers(self._as_query(self._parse_derived_table_values()))
            query = self._parse_set_operations(rows)
            return self._parse_pipe_syntax_query(query) if isinstance(query, exp.Query) else query
        statement = super()._parse_statement()
        if isinstance(statement, exp.Subquery) and isinstance(statement.this, exp.Values):
            statement.set("this", self._as_query(statement.this))
        return statement

    def _as_query(self, rows: exp.Expr | None) -> exp.Select:
        return self.expression(exp.Select(expressions=[exp.Star()], from_=exp.From(this=rows)))

    def _parse_window_token(self) -> exp.Expr:
        token = self._curr
        self._advance()
        return exp.Var(this=token.text).update_positions(token)

    def _parse_hint(self) -> exp.Hint | None:
        """Parse a hint, whatever it says: it has no effect."""
        if not self._match(TokenType.HINT):
            return None
        return self.expression(exp.Hint(expressions=[exp.var("hint")])).update_positions(self._prev)

    def _parse_bitwise(self, level: int = 0) -> exp.Expr | None:
        """Parse a | b & c << d as a | (b & (c << d)), as Spark does; to sqlglot these are alike, from left to right."""
        if level == len(_BITWISE):
            return super()._parse_bitwise()
        token, operator = _BITWISE[level]
        left = self._parse_bitwise(level + 1)
        while self._match(token):
            right = self._parse_bitwise(level + 1)
            is_nested = isinstance(right, (*_SHIFTS, *(each for _, each in _BITWISE)))
            left = self.expression(operator(this=left, expression=exp.Paren(this=right) if is_nested else right))
        return left

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """Parse ARRAY(x, y)[0], an element, which sqlglot takes for ARRAY[0]."""
        is_element = isinstance(this, exp.Anonymous) and self._curr.token_type is TokenType.L_BRACKET
        return super()._parse_bracket(exp.Paren(this=this) if is_element else this)

    def _parse_match_without_case(self, this: exp.Expr | None) -> exp.Expr:
        """Parse x ~* 'pattern' as x RLIKE '(?i)' || 'pattern'."""
        pattern = exp.DPipe(this=exp.Literal.string("(?i)"), expression=self._parse_required())
        return self.expression(exp.RegexpLike(this=this, expression=pattern))

    def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
        """Keep the text of an INTERVAL, of which sqlglot takes the one length that it finds: '- 5 days', '1 day 1'."""
        interval = super()._parse_interval_span(this, parse_function_unit)
        is_cut = this.is_string and interval.this.name not in (this.name, this.name.strip())
        if is_cut and not exp.INTERVAL_STRING_RE.fullmatch(this.name):
            interval.set("this", this)
            interval.set("unit", None)
        return interval

    def _parse_table_part(self, schema: bool = False) -> exp.Expr | None:
        """Parse FROM TABLE(f(…)) as FROM f(…)."""
        part = super()._parse_table_part(schema=schema)
        inside = part.expressions[:1] if is_call(part, "TABLE") else []
        return inside[0] if inside and isinstance(inside[0], exp.Anonymous) else part

    def _parse_required(self) -> exp.Expr:
        found = self._parse_bitwise()
        if found is None:
            self.raise_error("Expected an expression")
        return found or exp.Null()

    def _parse_over_table(self, name: str) -> exp.Expr:
        """Parse f(TABLE(…) PARTITION BY a, …) as f(TABLE(…), partition => a, …); of several columns (a, b)."""
        called, args = self._tokens[self._index - 2], list[exp.Expr]()
        while True:
            if (found := self._parse_lambda()) is None:
                break
            args.append(found)
            if self._match(TokenType.PARTITION_BY):
                key = exp.Kwarg(this=exp.var("partition"), expression=self._parse_required())
                args.append(self.expression(key))
            if not self._match(TokenType.COMMA):
                break
        return self.expression(exp.Anonymous(this=name.lower(), expressions=args)).update_positions(called)

    def _parse_windowing(self, name: str) -> exp.Expr:
        """Parse SESSION(TABLE r PARTITION BY a, …) as SESSION(TABLE(r, a), …), and so SESSION(DATA => TABLE r, …) and
        SESSION(r, …)."""
        called = self._tokens[self._index - 2]
        args = self._parse_csv(self._parse_windowing_argument)
        first, time = (*args, None, None)[:2]
        if isinstance(first, exp.Column) and (isinstance(time, exp.Column) or is_call(time, "DESCRIPTOR")):
            args[0] = in_table(exp.Table(this=first.this, db=first.args.get("table")))
        elif isinstance(first, exp.Subquery):
            args[0] = in_table(first)
        return self.expression(exp.Anonymous(this=name, expressions=args)).update_positions(called)

    def _parse_windowing_argument(self) -> exp.Expr | None:
        """Parse an argument, which may be named and may be a table: DATA => TABLE r PARTITION BY (a, b)"""
        called = self._curr
        if self._next and self._next.token_type is TokenType.FARROW:
            self._advance(2)
            value = self._parse_windowing_argument()
            return value and self.expression(
                exp.Kwarg(this=exp.var(called.text).update_positions(called), expression=value)
            )
        if not self._match(TokenType.TABLE):
            return self._parse_lambda()
        is_wrapped = self._match(TokenType.L_PAREN)
        query = self._parse_select() if is_wrapped else None
        table = exp.Subquery(this=query) if query else self._parse_table_parts() or exp.Table()
        if is_wrapped:
            self._match_r_paren()
        keys: list[exp.Expr] = []
        if self._match(TokenType.PARTITION_BY):
            is_list = self._curr is not None and self._curr.token_type is TokenType.L_PAREN
            keys = self._parse_wrapped_csv(self._parse_bitwise) if is_list else [self._parse_required()]
        return self.expression(in_table(table, keys)).update_positions(called)


def is_call(node: exp.Expr | None, *names: str) -> TypeGuard[exp.Anonymous]:
    """True if a node calls one of these functions, whatever the case of its name."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in names


def in_table(table: exp.Expr, keys: Sequence[exp.Expr] = ()) -> exp.Anonymous:
    """Write a table as an argument of a table function, perhaps with keys by which it is partitioned."""
    return exp.Anonymous(this="TABLE", expressions=[table, *keys])


TABLE_FUNCTIONS: dict[str, Callable[[WindowParser], exp.Expr]] = {
    **{name: lambda self, name=name: self._parse_over_table(name) for name in OVER_TABLES},  # type: ignore[misc]
    **{name: lambda self, name=name: self._parse_windowing(name) for name in WINDOWING},  # type: ignore[misc]
}


class Squall(Spark):
    """Registered with sqlglot as "squall" on import."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["'", "\\"]  # noqa: RUF012 - 'it''s' is one string since Spark 4

    class Parser(WindowParser):
        STRICT_CAST = True
        JOINS_HAVE_EQUAL_PRECEDENCE = False  # distinguishes a comma from CROSS JOIN
        FUNCTIONS = {}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            **{name: SparkParser.FUNCTION_PARSERS[name] for name in KEPT},
            "SUBSTRING": lambda self: self._parse_from_for(),
            "SUBSTR": lambda self: self._parse_from_for(),
            "POSITION": lambda self: self._parse_sought(),
            "OVERLAY": lambda self: self._parse_placing(),
            "FLOOR": lambda self: self._parse_to_unit("FLOOR"),
            "CEIL": lambda self: self._parse_to_unit("CEIL"),
            "CEILING": lambda self: self._parse_to_unit("CEIL"),
            **TABLE_FUNCTIONS,
            **JSON_CONSTRUCTORS,
        }
        NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }

        def _parse_from_for(self) -> exp.Expr:
            """Parse SUBSTRING(x FROM a FOR b) as SUBSTRING(x, a, b); sqlglot's parser would take both at once."""
            args = self._parse_csv(self._parse_bitwise)
            if len(args) == 1 and self._match(TokenType.FROM):
                args.append(self._parse_required())
                if self._match(TokenType.FOR):
                    args.append(self._parse_required())
            return self.expression(exp.Anonymous(this="SUBSTRING", expressions=args))

        def _parse_sought(self) -> exp.Expr:
            """Parse POSITION(x IN y) as POSITION(x, y)."""
            args = self._parse_csv(self._parse_bitwise)
            if len(args) == 1 and self._match(TokenType.IN):
                args.append(self._parse_required())
            return self.expression(exp.Anonymous(this="POSITION", expressions=args))

        def _parse_placing(self) -> exp.Expr:
            """Parse OVERLAY(x PLACING y FROM a FOR b) as OVERLAY(x, y, a, b)."""
            args = self._parse_csv(self._parse_bitwise)
            if len(args) == 1 and self._match_text_seq("PLACING"):
                args.append(self._parse_required())
                for word in (TokenType.FROM, TokenType.FOR):
                    if self._match(word):
                        args.append(self._parse_required())
            return self.expression(exp.Anonymous(this="OVERLAY", expressions=args))

        def _parse_to_unit(self, name: str) -> exp.Expr:
            """Parse FLOOR(t TO HOUR) as DATE_TRUNC('HOUR', t), and CEIL as the next one unless t is a whole one."""
            called, args = self._tokens[self._index - 2], self._parse_csv(self._parse_lambda)
            if len(args) != 1 or args[0] is None or not self._match_text_seq("TO"):
                return self.expression(exp.Anonymous(this=called.text, expressions=args)).update_positions(called)
            unit = exp.Literal.string(self._curr.text).update_positions(self._curr)
            self._advance()
            start = exp.Anonymous(this="DATE_TRUNC", expressions=[unit, args[0]]).update_positions(called)
            if name == "FLOOR":
                return self.expression(start)
            is_whole = exp.EQ(this=start, expression=args[0].copy())
            length = exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this=unit.name.upper()))
            following = exp.Add(this=start.copy(), expression=length)
            return self.expression(exp.Case(ifs=[exp.If(this=is_whole, true=start.copy())], default=following))

        def _parse_window_spec(self) -> dict[str, str | exp.Expr | None]:
            """Parse one end of a frame as a whole: sqlglot also takes ROWS BETWEEN AND, ROWS 1 and UNBOUNDED alone."""
            opening = self._prev.token_type  # ROWS or GROUPS, BETWEEN, or AND of the other end
            value: str | exp.Expr | None = "CURRENT ROW" if self._match_text_seq("CURRENT", "ROW") else None
            side: str | None = None
            if not value:
                value = (self._match_text_seq("UNBOUNDED") and "UNBOUNDED") or self._parse_bitwise()
                if not value:
                    self.raise_error("Expected UNBOUNDED, CURRENT ROW or how far the frame reaches")
                if not self._match_texts(self.WINDOW_SIDES):
                    self.raise_error("Expected PRECEDING or FOLLOWING")
                side = self._prev.text
            if opening == TokenType.BETWEEN and self._curr.token_type != TokenType.AND:
                self.raise_error("Expected AND and the other end of the frame")
            if opening not in (TokenType.BETWEEN, TokenType.AND) and self._curr.token_type == TokenType.AND:
                self.raise_error("Expected BETWEEN before the first end of the frame")
            return {"value": value, "side": side}

        def _parse_star_op(self, *keywords: str) -> list[exp.Expr] | None:
            """Parse * REPLACE (x AS a), (x AS r.a), too: sqlglot takes no qualified name there."""
            if "REPLACE" not in keywords or not self._match_texts(keywords):
                return super()._parse_star_op(*keywords)
            return self._parse_wrapped_csv(self._parse_replacement, optional=True)

        def _parse_replacement(self) -> exp.Expr:
            value = self._parse_disjunction()
            self._match(TokenType.ALIAS)
            name = self._parse_column()
            if name is None:
                self.raise_error("Expected AS and the name of a column")
            return self.expression(exp.Alias(this=value, alias=name))
