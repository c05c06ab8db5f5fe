"""Tables of the TPC benchmarks as declarations, and data from the programs that generate it.

TPCH.create("nation")                     CREATE TABLE nation (n_nationkey INT NOT NULL, …) USING parquet …
TPCH.generate(0.1, Path("data"))          data/nation.parquet, data/orders.parquet, …, made once
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from fcntl import LOCK_EX, flock
from pathlib import Path

from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Tables by name with their columns; `keys` where the key is not the first column; `static` ones do not change.

    `program` and `command` generate them, up to the options that all generators have.
    """

    name: str
    columns: Mapping[str, str]
    keys: Mapping[str, tuple[str, ...]]
    static: tuple[str, ...]
    program: str
    command: tuple[str, ...]
    chosen: tuple[str, ...] = ()  # options that choose the tables

    def create(self, table: str, folder: str = "data", format: str = "parquet") -> str:
        """Write the declaration of a table, its rows in `folder`."""
        columns = [f"    {column.strip()}" for column in split_columns(self.columns[table])]
        key = self.keys.get(table, (self.columns[table].split()[0],))
        body = ",\n".join([*columns, f"    PRIMARY KEY ({', '.join(key)})"])
        kind = "TABLE" if table in self.static else "STREAM"
        using, ending, more = ("parquet", "parquet", "") if format == "parquet" else ("csv", format, ", delimiter '|'")
        return f"CREATE {kind} {table} (\n{body}\n) USING {using} OPTIONS (path '{folder}/{table}.{ending}'{more});\n"

    def generate(self, scale: float, folder: Path, format: str = "parquet") -> Path:
        """Generate all tables at a scale factor in `folder`, once; needs the program on the PATH or beside Python."""
        done, made = folder / "scale", f"{scale:g} {format}\n"
        if done.exists() and done.read_text() == made:
            return folder
        program = shutil.which(self.program) or str(Path(sys.executable).parent / self.program)
        folder.mkdir(parents=True, exist_ok=True)
        command = [program, *self.command, format, "-s", f"{scale:g}", "-q", "--overwrite", *self.chosen]
        with tempfile.TemporaryDirectory(dir=folder) as room:  # of two who make them, one reads what is whole
            subprocess.run([*command, "--output-dir", room], check=True)
            for table in Path(room).iterdir():
                table.replace(folder / table.name)
        done.write_text(made)
        return folder

    def generate_cached(self, scale: float, format: str = "parquet") -> Path:
        """Generate the tables in the folder for temporary files, shared by all test runs: one does, others wait."""
        folder = Path(tempfile.gettempdir()) / f"squallpy-{self.name}" / f"{format}-{scale:g}"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            flock(lock, LOCK_EX)
            return self.generate(scale, folder, format)

    def main(self, usage: str | None) -> None:
        """Generate tables as the command line says: SCALE FOLDER [FORMAT]."""
        if len(sys.argv) < 3:
            sys.exit(usage)
        try:
            self.generate(float(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4])
        except FileNotFoundError:
            sys.exit(f"{self.program} makes the data and is not on the PATH: pip install {self.program}")


def split_columns(text: str) -> list[str]:
    """Split a list of columns at the commas that are not within parentheses."""
    parts = [""]
    for piece in text.split(","):
        if parts[-1].count("(") > parts[-1].count(")"):
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
    return parts[1:]
