"""Rows in the forms of Python: Arrow, pandas, polars, dicts."""

from typing import TYPE_CHECKING, Any

from squallpy.api.html import Html, table_html

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


class Rows(Html):
    """Rows that can be had in several forms."""

    def to_arrow(self) -> "pa.Table":
        """Return the rows as an Arrow table."""
        raise NotImplementedError

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the rows as a pandas data frame; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "polars.DataFrame":
        """Return the rows as a polars data frame; needs polars."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dicts."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def _repr_html_(self) -> str:
        return table_html(self.to_arrow())
