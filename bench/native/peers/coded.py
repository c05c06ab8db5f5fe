"""Columns as programs in Rust get them, and the rows of their answers as SQL has them."""

from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from squallpy.testing.compare_rows import Row


class Codes:
    """Tables as columns of 32-bit integers: numbers, cents, yyyymmdd, and texts as their places in the order of all."""

    def __init__(self, folder: Path) -> None:
        self._source, self.folder = folder, folder / "columns"

    def write(self, table: str, columns: Iterable[str]) -> None:
        """Write columns that are not there yet, each as a file of words, and beside it its texts, one a line."""
        self.folder.mkdir(exist_ok=True)
        for name in columns:
            if (path := self.folder / f"{name}.i32").exists():
                continue
            [column] = pq.read_table(self._source / f"{table}.parquet", columns=[name]).combine_chunks().columns
            if pa.types.is_decimal(column.type):
                column = pc.multiply(column, pa.scalar(10**column.type.scale, pa.decimal128(3))).cast(pa.int64())
            elif pa.types.is_date(column.type):
                year, month, day = (part(column) for part in (pc.year, pc.month, pc.day))
                column = pc.add(pc.multiply(pc.add(pc.multiply(year, 100), month), 100), day)
            elif not pa.types.is_integer(column.type):
                texts, column = np.unique(column.to_numpy().astype(str), return_inverse=True)
                path.with_suffix(".txt").write_text("".join(f"{text}\n" for text in texts))
            words = np.asarray(column).astype("<i8")
            assert words.min() >= -(2**31) and words.max() < 2**31, f"{name} takes more than 32 bits"
            words.astype("<i4").tofile(path)

    @cache  # noqa: B019
    def texts(self, name: str) -> list[str]:
        return (self.folder / f"{name}.txt").read_text().splitlines()

    def text(self, name: str, code: int) -> str:
        return self.texts(name)[code]


def day(number: int) -> date:
    """Read a date: day(19950315) → 1995-03-15."""
    return date(number // 10_000, number // 100 % 100, number % 100)


def scaled(digits: int, number: int) -> Decimal:
    return Decimal(number).scaleb(-digits)


ROWS: dict[str, Callable[..., Row]] = {
    "q1": lambda codes, flag, status, quantity, price, revenue, charge, discount, count: (
        codes.text("l_returnflag", flag), codes.text("l_linestatus", status), scaled(2, quantity), scaled(2, price),
        scaled(4, revenue), scaled(6, charge), *(total / 100 / count for total in (quantity, price, discount)), count,
    ),
    "q3": lambda codes, order, day_, priority, revenue: (order, scaled(4, revenue), day(day_), priority),
    "q5": lambda codes, nation, revenue: (codes.text("n_name", nation), scaled(4, revenue)),
    "q6": lambda codes, revenue: (scaled(4, revenue),),
    "q12": lambda codes, mode, high, low: (codes.text("l_shipmode", mode), high, low),
    "q17": lambda codes, price: (price / 700,),
    "q18": lambda codes, name, customer, order, day_, price, quantity: (
        codes.text("c_name", name), customer, order, day(day_), scaled(2, price), scaled(2, quantity),
    ),
}  # fmt: skip
"""The queries that peers have, and the rows of their answers from what programs print."""
