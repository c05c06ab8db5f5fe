"""Cofactor triggers by hand in C++ for stars, compiled by g++ when they are run."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.data.tables import Stream
from bench.fivm.schemas import Schema, View, children
from squallpy.catalog.relation import MULT

HERE = Path(__file__).parent
FLAGS = {"native": ("-O3",), "native-march": ("-O3", "-march=native")}
Reals = npt.NDArray[np.float64]


class NotAStar(ValueError):
    """A schema whose relations are not all joined on one key."""


@dataclass(frozen=True)
class Done:
    """What runs gave: processor seconds by repeat and batch, sums in the order of `features`, bytes of the views."""

    seconds: Reals
    features: tuple[str, ...]
    root: Reals
    nbytes: int


def relations_of(schema: Schema) -> list[str]:
    """List the relations of a star in the order in which they are multiplied, those of few variables first.

    The product with the last is the largest, and is added to the root at once.
    """
    leaves = list(children(schema.tree))
    alone = len(leaves) == len(schema.tree.parts) and all(leaf.parts == (_relation(leaf),) for leaf in leaves)
    if not alone or schema.tree.key or len(schema.join_variables) != 1:
        raise NotAStar(f"the relations of {schema.name} are not all joined on one key")
    return sorted((_relation(leaf) for leaf in leaves), key=lambda relation: len(schema.columns[relation]))


def _relation(leaf: View) -> str:
    return str(leaf.parts[0])


def run(schema: Schema, stream: Stream, repeats: int, flags: Sequence[str]) -> Done:
    """Compile the triggers and run the batches of a stream, its rows decoded beforehand."""
    relations, [key] = relations_of(schema), schema.join_variables
    variables = [[column for column in schema.columns[relation] if column != key] for relation in relations]
    compiler = shutil.which("g++")
    if not compiler:
        raise SystemExit("bench: g++ is not installed")
    with tempfile.TemporaryDirectory() as room:
        program, folder = Path(room) / "star", Path(room) / "rows"
        folder.mkdir()
        counts = ",".join(str(len(names)) for names in variables)
        command = [compiler, "-std=c++17", "-Wall", "-Wextra", *flags, f"-DVARIABLE_COUNTS={counts}"]
        subprocess.run([*command, str(HERE / "main.cpp"), "-o", str(program)], check=True)
        sizes, ends = [stream.batches], np.empty((stream.batches, len(relations), 2), np.int64)
        for number, (relation, names) in enumerate(zip(relations, variables, strict=True)):
            sizes += _write(stream.tables[relation], key, names, folder / str(number))
        for batch in range(stream.batches):
            ranges = stream.replay.ranges(batch)
            ends[batch] = [ranges[relation] for relation in relations]
        np.array(sizes, np.int64).tofile(folder / "sizes")
        ends.tofile(folder / "ends")
        seconds = np.empty((repeats, stream.batches))
        for repeat in range(repeats):  # NB: a process each, as memory that was there before has its pages already
            subprocess.run([str(program), str(folder)], check=True)
            seconds[repeat] = np.fromfile(folder / "seconds")
        [nbytes] = np.fromfile(folder / "bytes", np.int64)
        features = (key, *(name for names in variables for name in names))
        return Done(seconds, features, np.fromfile(folder / "root"), int(nbytes))


def _write(rows: pa.RecordBatch, key: str, names: Sequence[str], path: Path) -> tuple[int, int]:
    """Write the columns of a relation; return its rows, and whether they have weights."""
    weighted = MULT in rows.schema.names
    with path.open("wb") as file:
        np.asarray(rows[key], np.int64).tofile(file)
        for name in [MULT] * weighted + list(names):
            np.asarray(rows[name], np.float64).tofile(file)
    return len(rows), int(weighted)
