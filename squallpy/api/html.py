"""HTML of views, answers and plans, as notebooks show them: every text escaped, no style but its own."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 20
"""Rows that are shown of a table."""
_WIDEST = 200  # characters of a value
_LINE = "border-bottom:1px solid rgba(128,128,128,.3)"
_CELL = "padding:.15em .7em;white-space:pre;max-width:40em;overflow:hidden;text-overflow:ellipsis"
_FAINT = "opacity:.6;font-size:.85em;font-weight:normal"


class Html:
    """Base of what shows itself as HTML, in Jupyter and in marimo."""

    def _repr_html_(self) -> str:
        raise NotImplementedError

    def _mime_(self) -> tuple[str, str]:
        """Return the type and text that marimo shows."""
        return "text/html", self._repr_html_()


class PlanText(str, Html):
    """A stage of a plan: its text, which notebooks and prompts show line by line."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f'<pre style="line-height:1.35;overflow-x:auto;white-space:pre">{escape(self)}</pre>'

    def __repr__(self) -> str:
        return str(self)


def columns_html(columns: Mapping[str, str], title: str) -> str:
    """Show the columns of a relation whose rows are not known, with their SQL types."""
    items = "".join(
        f'<tr><td style="{_CELL}">{escape(name)}</td><td style="{_CELL};{_FAINT}">{escape(kind)}</td></tr>'
        for name, kind in columns.items()
    )
    return f'<div style="font-weight:600">{escape(title)}</div><table style="border-collapse:collapse">{items}</table>'


def table_html(table: "pa.Table", title: str = "", note: str = "", types: Mapping[str, str] | None = None) -> str:
    """Show the first rows of a table under its columns and their SQL types.

    Args:
        title: What stands over it; `note`: what stands under it.
        types: The SQL types of the columns, where they are known; else those of Arrow's types.
    """
    from squallpy.runtime.formats.text_columns import cells, is_number
    from squallpy.runtime.formats.type_conversion import sql_type

    names, first = table.column_names, table.slice(0, ROWS).combine_chunks()
    known = [*types.values()] if types else [str(sql_type(kind) or kind) for kind in table.schema.types]
    aligned = ["right" if is_number(kind) else "left" for kind in table.schema.types]
    texts = [cells(column.combine_chunks()).to_pylist() for column in first.columns]
    head = "".join(
        f'<th style="{_CELL};{_LINE};text-align:{align}">{escape(name)}'
        f'<br><span style="{_FAINT}">{escape(kind)}</span></th>'
        for name, kind, align in zip(names, known, aligned, strict=True)
    )
    rows = (
        "".join(
            f'<td style="{_CELL};text-align:{align}">{_value(text)}</td>'
            for text, align in zip(row, aligned, strict=True)
        )
        for row in zip(*texts, strict=True)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    count = f"{len(table):,} row{'s' * (len(table) != 1)}"
    left = f"the first {ROWS} of {count}" if len(table) > ROWS else count
    over = f'<div style="font-weight:600">{escape(title)}</div>' if title else ""
    under = f'<div style="{_FAINT}">{escape(" · ".join(filter(None, (left, note))))}</div>'
    return (
        f'<div style="overflow-x:auto">{over}<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{under}</div>"
    )


def _value(text: str | None) -> str:
    if text is None:
        return f'<span style="{_FAINT}">NULL</span>'
    return escape(text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…")
