"""Results on a terminal: cut to its width and to some rows, and what is left out is said."""

import io
import sys

import pyarrow as pa
import pytest

from squallpy.terminal.result_printer import ResultPrinter


class Terminal(io.TextIOWrapper):
    """A terminal that remembers what it was sent."""

    def isatty(self) -> bool:
        return True


def printed(monkeypatch: pytest.MonkeyPatch, table: pa.Table, width: int, most: int = 40, mode: str = "table") -> str:
    screen = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", Terminal(screen))
    monkeypatch.setattr(ResultPrinter, "width", width)
    monkeypatch.setenv("NO_COLOR", "1")
    printer = ResultPrinter(mode)
    printer.max_rows = most
    printer.table(table)
    return screen.getvalue().decode()


def golden_a_million_rows_show_the_first_and_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"n": pa.array(range(1_000_000))})
    assert printed(monkeypatch, table, 80, 4) == (
        "     n\n──────\n     0\n     1\n⋮\n999998\n999999\n1,000,000 rows, 4 shown (.maxrows)\n"
    )
    assert printed(monkeypatch, table, 80, 0).count("\n") == 1_000_003
    assert printed(monkeypatch, table, 80, 3).splitlines()[2:6] == ["     0", "     1", "⋮", "999999"]
    assert printed(monkeypatch, table.slice(0, 1), 80) == "n\n─\n0\n1 row\n"


@pytest.mark.parametrize("width", [1, 10, 20, 80, 1_000])
def golden_two_hundred_columns(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    table = pa.table({f"column_{i}": pa.array([i, None]) for i in range(200)})
    *lines, told = printed(monkeypatch, table, width).splitlines()
    shown = len(lines[0].split())
    assert max(map(len, lines)) <= max(width, len("column_0"))
    assert told == f"2 rows, {200 - shown} of 200 columns not shown (.mode line)"
    assert printed(monkeypatch, table, width, mode="line").count(" = ") == 400


def golden_a_narrow_terminal_cuts_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a name that is long": ["x" * 50], "n": [1]})
    assert printed(monkeypatch, table, 20).splitlines()[:3] == [
        "a name that is …  n",
        f"{'─' * 16}  ─",
        f"{'x' * 15}…  1",
    ]
    assert printed(monkeypatch, pa.table({"t": ["a\nb\x1b[2J"]}), 20).splitlines()[2] == "a·b·[2J"


def golden_no_rows_and_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = pa.table({"n": pa.array([], pa.int64())})
    assert printed(monkeypatch, empty, 20) == "n\n─\n0 rows\n"
    assert printed(monkeypatch, empty, 20, mode="line") == printed(monkeypatch, empty, 20, mode="json") == ""
    assert printed(monkeypatch, empty, 20, mode="csv") == "n\n"
