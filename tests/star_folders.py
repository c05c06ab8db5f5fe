"""Folders of a fact and its dimensions that files come to, for plans that are chosen by the rows that came."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa

from squallpy.testing.compare_rows import Row

COLUMNS = {"fact": "kjxyz", "dim": "ku", "other": "jv"}


class StarFolders:
    """Folders of JSON lines with inserts and deletes, and DuckDB over the same rows."""

    def __init__(self, folder: Path, keys: int) -> None:
        self.random, self.folder, self.keys, self.files = Random(keys), folder, keys, 0
        self.rows: dict[str, list[tuple[int, ...]]] = {name: [] for name in COLUMNS}
        for name in ("dim", "other"):
            self.write(name, [(key, self.random.randrange(9)) for key in range(keys)])

    def write(self, name: str, new: Sequence[tuple[int, ...]], old: Sequence[tuple[int, ...]] = ()) -> None:
        """Write a file with inserts, and deletes of rows that are there."""
        for row in old:
            self.rows[name].remove(row)
        self.rows[name] += new
        signed = [(*row, "+") for row in new] + [(*row, "-") for row in old]
        lines = [dict(zip((*COLUMNS[name], "op"), row, strict=True)) for row in signed]
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / f"{self.files}.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        self.files += 1

    def facts(self, count: int) -> None:
        """Write facts, and delete some."""
        draw = self.random.randrange
        new = [(draw(self.keys), draw(self.keys), draw(9), draw(9), draw(9)) for _ in range(count)]
        self.write("fact", new, self.random.sample(self.rows["fact"], min(len(self.rows["fact"]), count // 5)))

    def change_dimension(self) -> None:
        """Give some keys other values."""
        old = self.random.sample(self.rows["dim"], len(self.rows["dim"]) // 2)
        self.write("dim", [(key, self.random.randrange(9)) for key, _ in old], old)

    def cofactors(self) -> list[Row]:
        """Compute the cofactor matrix of the join in DuckDB."""
        duck, names = duckdb.connect(), "xyzuv"
        for name, columns in COLUMNS.items():
            values = zip(*self.rows[name], strict=True) if self.rows[name] else [()] * len(columns)
            arrays = [pa.array(each, pa.int64()) for each in values]
            duck.register(name, pa.table(dict(zip(columns, arrays, strict=True))))
        pairs = [("", "")] + [(a, b) for i, a in enumerate(names) for b in ("", *names[: i + 1])]
        sums = ", ".join(f"COALESCE(SUM({a or 1} * {b or 1}), 0)" for a, b in pairs)
        found = duck.execute(f"SELECT {sums} FROM fact NATURAL JOIN dim NATURAL JOIN other").fetchall()[0]
        wanted = [(a, b, float(value)) for (a, b), value in zip(pairs, found, strict=True)]
        return wanted if found[0] else wanted[:1]
