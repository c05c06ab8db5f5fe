"""Relations in Python: streams, tables and views, and what is computed of them, each a query of the session.

    orders.join(items, on=lambda o, i: o.id == i.oid).group_by("who").agg(revenue=sum_("price")).materialize("rev")

Each step binds its query, so that a mistake is found at its line; `materialize` creates the view by SQL's statement.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from squallpy.api.block import Block, relation_block, unique, with_columns
from squallpy.api.expressions import Argument, Expression, Named, Row, argument, as_expression
from squallpy.api.html import PlanText, columns_html
from squallpy.api.rows import Rows
from squallpy.base.call_site import CallSite, call_site
from squallpy.base.errors import SquallError, nearest
from squallpy.frontend.declaration_text import qualified
from squallpy.frontend.source_text import SourcePosition

if TYPE_CHECKING:
    import pyarrow as pa

    from squallpy.api.view import View
    from squallpy.live.open_session import OpenSession

Condition = Callable[[Row, Row], Any]
FILE = "relation"
"""The file that texts of relations are said to be in, until the place in Python is known."""

JOINS: Mapping[str, str] = {
    "inner": "JOIN", "cross": "CROSS JOIN", "left": "LEFT JOIN", "leftouter": "LEFT JOIN", "right": "RIGHT JOIN",
    "rightouter": "RIGHT JOIN", "outer": "FULL JOIN", "full": "FULL JOIN", "fullouter": "FULL JOIN",
    "semi": "LEFT SEMI JOIN", "leftsemi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN", "leftanti": "LEFT ANTI JOIN",
}  # fmt: skip
"""PySpark's words, of which underscores are left out."""


class Relation(Rows):
    """Rows that are known by a query over streams, tables and views of a session."""

    _session: "OpenSession"

    @property
    def _block(self) -> Block:
        raise NotImplementedError

    @property
    def columns(self) -> dict[str, str]:
        """The SQL types of its columns, by name."""
        return {field.name: str(field.type) for field in self._session.schema(self.to_sql(), FILE)}

    def to_sql(self) -> str:
        """Write it as a SELECT."""
        return self._block.text

    def filter(self, *conditions: Argument) -> "Relation":
        """Return the rows for which all conditions are TRUE, as in `filter(lambda r: r.total > 10)`."""
        block = self._block.open(keeps_order=True)
        site, row = call_site(), block.row
        texts = tuple(argument(each, site).render(row) for each in conditions)
        return self._derived(replace(block, where=(*block.where, *texts), is_relation=False), site)

    def select(self, *columns: "Argument | Named", **named: Argument) -> "Relation":
        """Return some columns and expressions, as in `select("who", lambda r: r.a.alias("b"), c=lambda r: r.a * 2)`."""
        block, site = self._block.open(keeps_order=True), call_site()
        items = _items(block.row, columns, named, site)
        if not items:
            raise SquallError("SQ1001", "select needs a column", site.span())
        return self._derived(with_columns(block, items), site)

    def with_columns(self, **named: Argument) -> "Relation":
        """Return all columns and some more; those of the same name are replaced."""
        block, site = self._block.open(keeps_order=True), call_site()
        return self._derived(with_columns(block, {**block.columns, **_items(block.row, (), named, site)}), site)

    def distinct(self) -> "Relation":
        """Return each row once."""
        block = self._block
        if block.order or block.is_cut or block.group:
            block = block.nested(block.names[0])
        return self._derived(replace(block, distinct=True, is_relation=False), call_site())

    def group_by(self, *keys: "Argument | Named", **named: Argument) -> "Groups":
        """Group by columns and expressions; `agg` computes aggregates of the groups."""
        block, site = self._block.open(), call_site()
        items = _items(block.row, keys, named, site)
        if not items:
            raise SquallError("SQ1001", "group_by needs a key", site.span(), "agg alone makes one row of all")
        return Groups(self, block, items)

    def agg(self, *aggregates: "Argument | Named", **named: Argument) -> "Relation":
        """Compute aggregates of all rows: agg(n=count(), revenue=sum_("price"))."""
        return Groups(self, self._block.open(), {}).agg(*aggregates, **named)

    def join(
        self, other: "Relation", on: "Condition | str | list[str] | None" = None, how: str = "inner"
    ) -> "Relation":
        """Join with another relation; of columns with the same name, those of the other get `_right`.

        Args:
            on: A function of a row of either, or names of columns that are equal, which the result has once.
            how: inner, cross, left, right, outer, semi or anti, and PySpark's other words for these.

        Raises:
            SquallError: SQ7003 for an unknown `how`, SQ2003 for an unknown column.
        """
        site = call_site()
        kind = JOINS.get(how.lower().replace("_", ""))
        if kind is None:
            raise SquallError("SQ7003", f'unknown join "{how}"', site.span(how), nearest(how, JOINS))
        self._check_other(other, "join", site)
        left = self._block.open()
        if left.where or left.window:
            left = left.nested(left.names[0])
        _, right = other._block.named(left.names)
        left_row, right_row = left.row, right.row
        keys = [on] if isinstance(on, str) else [] if on is None or callable(on) else [*on]
        pairs = {key: (left_row._find(key, site), right_row._find(key, site)) for key in keys}
        if kind == "CROSS JOIN":
            if on is not None:
                raise SquallError("SQ2005", "a cross join has no condition", site.span(), 'write how="inner"')
            condition = ""
        elif callable(on):
            condition = f" ON {as_expression(on(left_row, right_row)).render(left_row._beside(right_row))}"
        elif keys:
            condition = f" ON {' AND '.join(f'{ours} = {theirs}' for ours, theirs in pairs.values())}"
        else:
            raise SquallError("SQ1001", "join needs a condition", site.span(), 'on=lambda a, b: …, or how="cross"')
        columns = dict(left.columns)
        if kind not in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
            columns = _joined(columns, right.columns, pairs, kind)
        source = f"{left.source} {kind} {right.source}{condition}"
        is_simple = not (kind == "FULL JOIN" and keys)
        return self._derived(Block(source, (*left.names, *right.names), columns, is_simple=is_simple), site)

    def union(self, other: "Relation", distinct: bool = False) -> "Relation":
        """Return the rows of both, column by column in their order; `distinct`: each row once."""
        return self._combined(other, "UNION" if distinct else "UNION ALL", call_site())

    def intersect(self, other: "Relation") -> "Relation":
        """Return the rows that both have, each once."""
        return self._combined(other, "INTERSECT", call_site())

    def subtract(self, other: "Relation") -> "Relation":
        """Return the rows that the other does not have, each once."""
        return self._combined(other, "EXCEPT", call_site())

    def order_by(self, *keys: Argument) -> "Relation":
        """Order the rows, for `limit` and for those who read them: order_by("who", desc("total"))."""
        block = self._block.open(keeps_order=True)
        site, row = call_site(), block.row
        orders = tuple(_argument_of(row, each, site).render(row) for each in keys)
        return self._derived(replace(block, order=orders, is_relation=False), site)

    def limit(self, count: int, offset: int = 0) -> "Relation":
        """Return the first rows in the order."""
        block, site = self._block, call_site()
        if block.is_cut:
            block = block.nested(block.names[0])
        return self._derived(replace(block, limit=count, offset=offset, is_relation=False), site)

    def window(
        self,
        size: str | int | None = None,
        slide: str | int | None = None,
        *,
        tumbling: bool = False,
        session: str | None = None,
    ) -> "Relation":
        """Limit the streams to a part, as in `window("5 minutes", slide="1 minute")`, or to so many of the newest rows.

        Args:
            size: A time, with a unit as in docs/windows.md, or a number of rows.
            slide: The step in which the window moves; by default it is always as of the newest row.
            tumbling: It moves by its whole size.
            session: Instead of a size, the gap of `SESSION`: the rows since the last pause that was longer.
        """
        rows, site = isinstance(size, int), call_site()
        if (size is None) == (session is None) or (session is not None and (tumbling or slide is not None)):
            message, hint = "a window has a size, or the gap of a session", 'write session="5 minutes" alone'
            raise SquallError("SQ2005", message, site.span(), hint)
        if session is not None:
            clause = f"SESSION {_duration(session, site)}"
        elif tumbling:
            clause = f"ROWS {size} TUMBLE" if rows else f"TUMBLE {_duration(size, site)}"
        else:
            clause = f"ROWS {size}" if rows else f"RANGE {_duration(size, site)}"
            clause += f" SLIDE {slide if rows else _duration(slide, site)}" if slide is not None else ""
        block = self._block if not self._block.window else self._block.nested(self._block.names[0])
        return self._derived(replace(block, window=clause, is_relation=False), site)

    def materialize(self, name: str | None = None) -> "View":
        """Keep it fresh as a materialized view; without a name, under one that is made up.

        Raises:
            SquallError: SQ2007 if the name is taken, SQ6009 if rows of its streams are gone.
        """
        from squallpy.api.view import View

        site = call_site()
        position = SourcePosition(site.first - 1)  # so that others can say where the view was created
        create = "" if name is None else f"CREATE MATERIALIZED VIEW {qualified(name)} AS\n"
        with pointing_at(site, site.file):
            (outcome,) = self._session.execute(create + self.to_sql(), site.file, True, position)
        assert outcome.view
        return View(self._session, outcome.view)

    def to_arrow(self) -> "pa.Table":
        """Answer it as of the last batch; SQ3001 if it reads a stream, of which only views have the rows."""
        with pointing_at(call_site()):
            (outcome,) = self._session.execute(self.to_sql(), FILE)
        assert outcome.table is not None
        return outcome.table

    def explain(self, stage: str = "triggers") -> PlanText:
        """Show it at a stage of its compilation: logical, optimized, calculus, triggers, physical, stages."""
        with pointing_at(call_site()):
            (outcome,) = self._session.execute(f"EXPLAIN {stage} {self.to_sql()}", FILE)
        return PlanText(outcome.text or "")

    def _check_other(self, other: Any, what: str, site: CallSite) -> None:
        if not isinstance(other, Relation):
            raise SquallError("SQ2005", f"{what} takes a relation, not a {type(other).__name__}", site.span())
        if other._session is not self._session:
            raise SquallError("SQ2005", f"{what} of relations of two sessions", site.span(), "declare both in one")

    def _combined(self, other: "Relation", word: str, site: CallSite) -> "Relation":
        self._check_other(other, word.split()[0].lower(), site)
        texts = [f"({each._block.text})" if _ends(each._block) else each._block.text for each in (self, other)]
        name = self._block.names[0]
        block = Block(f"({texts[0]}\n{word}\n{texts[1]}) AS `{name}`", (name,), {})
        columns = {column: f"`{name}`.`{column}`" for column in self._block.columns}
        return self._derived(replace(block, columns=columns), site)

    def _derived(self, block: Block, site: CallSite) -> "Relation":
        """Return a relation after its query was bound; mistakes are at their place in the Python code."""
        with pointing_at(site):
            self._session.schema(block.text, FILE)
        return Derived(self._session, block)

    def _repr_html_(self) -> str:
        return columns_html(self.columns, "relation")

    def __repr__(self) -> str:
        return f"<relation: {', '.join(f'{name} {type}' for name, type in self.columns.items())}>"


class Derived(Relation):
    """A relation that is computed of others."""

    def __init__(self, session: "OpenSession", block: Block) -> None:
        self._session, self._query = session, block

    @property
    def _block(self) -> Block:
        return self._query


class Table(Relation):
    """A static table, or a view that is not materialized; base of the streams and the views.

    Args:
        name: That by which the session knows it.
    """

    def __init__(self, session: "OpenSession", name: str) -> None:
        self._session, self.name = session, name

    @property
    def _block(self) -> Block:
        return relation_block(self.name, tuple(self.columns))

    @property
    def columns(self) -> dict[str, str]:
        return {field.name: str(field.type) for field in self._session.columns(self.name)}

    def _repr_html_(self) -> str:
        return columns_html(self.columns, f"{type(self).__name__.lower()} {self.name}")

    def __repr__(self) -> str:
        kind = type(self).__name__.lower()
        return f"<{kind} {self.name}: {', '.join(f'{name} {type}' for name, type in self.columns.items())}>"


class Groups:
    """Groups of a relation's rows."""

    def __init__(self, relation: Relation, block: Block, keys: Mapping[str, str]) -> None:
        self._relation, self._block, self._keys = relation, block, keys

    def agg(self, *aggregates: "Argument | Named", **named: Argument) -> Relation:
        """Compute aggregates of each group, behind its keys: agg(n=count(), revenue=sum_("price"))."""
        site = call_site()
        items = _items(self._block.row, aggregates, named, site)
        if not items:
            raise SquallError("SQ1001", "agg needs an aggregate", site.span(), "n=count(), or distinct() for the keys")
        taken = next((name for name in items if name.lower() in {key.lower() for key in self._keys}), None)
        if taken:
            raise SquallError("SQ2007", f'"{taken}" is a key, too', site.word(taken), "give it another name")
        block = with_columns(self._block, {**self._keys, **items})
        block = replace(block, group=tuple(self._keys.values()), is_simple=False)
        return self._relation._derived(block, site)


def _items(row: Row, items: tuple[Any, ...], named: Mapping[str, Any], site: CallSite) -> dict[str, str]:
    """Write the items of a select list by name."""
    given = list[tuple[str, Expression]]()
    for item in items:
        value = item(row) if callable(item) else item
        if isinstance(value, Named):
            given.append((value.name, value.expression))
        elif isinstance(value, str) and value is item:
            given.append((value, argument(value, site)))
        else:
            expression = as_expression(value)
            given.append((_name_of(expression, site), expression))
    given += [(name, _argument_of(row, value, site)) for name, value in named.items()]
    found = dict[str, str]()
    for name, expression in given:
        if name.lower() in {each.lower() for each in found}:
            raise SquallError("SQ2007", f'two columns "{name}"', site.word(name), "name one of them otherwise")
        found[name] = expression.render(row)
    return found


def _argument_of(row: Row, value: Any, site: CallSite) -> Expression:
    """Take an argument as an expression; a function is called with the row."""
    return as_expression(value(row)) if callable(value) else argument(value, site)


def _name_of(expression: Expression, site: CallSite) -> str:
    name = expression.column_name
    if name is None:
        raise SquallError("SQ1001", "an expression without a name", site.span(), 'write name=…, or ….alias("name")')
    return name


def _joined(
    left: dict[str, str], right: Mapping[str, str], keys: Mapping[str, tuple[str, str]], kind: str
) -> dict[str, str]:
    """Join the columns of two relations: keys once, and those of the right that clash with `_right`."""
    columns = dict(left)
    merged = {theirs for _, theirs in keys.values()}
    if kind in ("RIGHT JOIN", "FULL JOIN"):
        for ours, theirs in keys.values():
            text = theirs if kind == "RIGHT JOIN" else f"COALESCE({ours}, {theirs})"
            columns = {name: text if known == ours else known for name, known in columns.items()}
    for name, text in right.items():
        if text not in merged:
            clashes = name.lower() in {each.lower() for each in columns}
            columns[unique(f"{name}_right", tuple(columns)) if clashes else name] = text
    return columns


def _ends(block: Block) -> bool:
    return bool(block.order or block.is_cut or block.window)


def _duration(text: Any, site: CallSite) -> str:
    """Check a time of a window: 5 minutes."""
    if not isinstance(text, str) or not re.fullmatch(r"\s*[+-]?\d+\s*[A-Za-z]+\s*", text):
        raise SquallError("SQ2010", f"{text!r} is no size of a window", site.span(str(text)), 'write "5 minutes"')
    return text.strip()


@contextmanager
def pointing_at(site: CallSite, file: str = FILE) -> Iterator[None]:
    """Point errors of a text that is said to be in a file at the place in Python that they are about."""
    try:
        yield
    except SquallError as error:
        span = error.span
        if span is None or span.file != file:
            raise
        text = span.text[span.column - 1 : span.column - 1 + span.length]
        column = re.fullmatch(r"(?:`[^`]+`\.)?[`']([^`']+)[`']", text)
        word = column[1] if column else text
        raise SquallError(error.code, error.message, site.word(word), error.hint) from None
