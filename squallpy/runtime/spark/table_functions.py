"""Matrix programs as table functions of Spark SQL: evaluated once for the rows of a table, as Spark evaluates a query.

    register(session)
    SELECT * FROM ols(TABLE(obs), 'y')                       feature, coefficient
    SELECT * FROM matrix_power(TABLE(edges), 16)             i, j, value
    SELECT * FROM reachability(TABLE(edges), 4)              i, j: in at most 4 hops, also in none
    SELECT * FROM shortest_paths(TABLE(edges), 4)            i, j, value
    SELECT * FROM pagerank(TABLE(edges), damping => 0.85)    i, value

Edges are the first columns of their table: from, to, and weight (1 where there is no third column). Nodes are numbered
from 0. All rows go to one task, and they are evaluated once: `squallpy.fresh` keeps them fresh over streams.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import udtf
from pyspark.sql.types import DoubleType, IntegralType, LongType, NumericType, StringType, StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.base.semirings import ARITHMETIC, BOOLEAN, SEMIRINGS, Semiring
from squallpy.functions.graph_functions import DAMPING, GRAPHS, MOST_STEPS, STEPS, pagerank
from squallpy.maintain.matrix.compile_triggers import compile_program
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.parser import read_program
from squallpy.runtime.matrix.maintained_program import MaintainedProgram
from squallpy.runtime.matrix.memory_check import check_memory
from squallpy.runtime.matrix.stored_views import Array

CELLS = StructType().add("i", LongType()).add("j", LongType()).add("value", DoubleType())
PAIRS = StructType().add("i", LongType()).add("j", LongType())
VECTOR = StructType().add("i", LongType()).add("value", DoubleType())
COEFFICIENTS = StructType().add("feature", StringType()).add("coefficient", DoubleType())


def register(session: SparkSession) -> None:
    """Make the functions known to a session, in whose SQL they answer once, in one task.

    register(spark)    →    spark.sql("SELECT * FROM ols(TABLE(obs), 'y')")    feature STRING, coefficient DOUBLE
    """
    for name, function in FUNCTIONS.items():
        session.udtf.register(name, udtf(function))  # type: ignore[arg-type]


def evaluate_program(
    called: str, text: str, ring: Semiring, shapes: Mapping[str, str], inputs: Mapping[str, Array]
) -> Array:
    """Evaluate a program and return its last output; `shapes` are those of inputs, "m n"."""
    declared = []
    for name in inputs:
        rows, cols = (Size.of(int(size) if size.isdigit() else size) for size in shapes[name].split())
        declared.append(MatrixInput(Name(name, rows, cols)))
    program = read_program(text, declared, ring)
    sizes = {s: n for name in inputs for s, n in zip(shapes[name].split(), inputs[name].shape, strict=True)}
    compiled = compile_program(program, [], {symbol: sizes[symbol] for symbol in program.symbols()})
    check_memory(called, compiled.maintained, {symbol: sizes[symbol] for symbol in program.symbols()})
    live = MaintainedProgram(compiled.maintained, inputs)
    return live.read(program.outputs[-1])


@dataclass
class CallPlan(AnalyzeResult):
    """The analysis of a call, known before its rows: the columns that it reads, and its other arguments."""

    columns: tuple[str, ...] = ()
    steps: int = 0
    damping: float = 0.0


def plan_call(schema: StructType, columns: tuple[str, ...], steps: int = 0, damping: float = 0.0) -> CallPlan:
    return CallPlan(schema, withSinglePartition=True, columns=columns, steps=steps, damping=damping)


class ColumnCollector:
    """A collector of the columns of all rows until the last has come."""

    def __init__(self, plan: CallPlan) -> None:
        self._plan = plan
        self._rows: list[tuple[Any, ...]] = []

    def eval(self, table: Row, *_: Any, **__: Any) -> None:
        self._rows.append(tuple(table[name] for name in self._plan.columns))

    def arrays(self) -> list[Array]:
        """Convert the columns to arrays; SQ5012 where one has a NULL."""
        columns = list(zip(*self._rows, strict=True)) or [()] * len(self._plan.columns)
        for name, column in zip(self._plan.columns, columns, strict=True):
            if None in column:
                raise SquallError("SQ5012", f"{name} is NULL, but a matrix entry has to be a number")
        return [np.array([float(v) for v in c] if at > 1 else c) for at, c in enumerate(columns)]


class Edges(ColumnCollector):
    """Edges as a square matrix."""

    def matrix(self, ring: Semiring) -> Array:
        """Add up, by ⊕, the weights of equal edges; SQ5010 and SQ5012 for rows that are no edges."""
        source, target, *weight = self.arrays()
        source, target = source.astype(np.int64), target.astype(np.int64)
        if len(source) and min(source.min(), target.min()) < 0:
            raise SquallError("SQ5010", "a negative node number", hint="nodes are numbered from 0")
        values = weight[0] if weight else np.ones(len(source))
        if not np.isfinite(values).all():
            raise SquallError("SQ5012", f"{values[~np.isfinite(values)][0]} is not a valid edge weight")
        n = int(max(source.max(initial=-1), target.max(initial=-1))) + 1
        _check_square_fits(n, ring)
        out = np.full((n, n), ring.zero, ring.dtype)
        ring.add.at(out, (source, target), values != 0 if ring is BOOLEAN else values)
        return out

    def result(self, name: str, steps: int) -> Array:
        """Evaluate a graph function on these edges."""
        function = GRAPHS[name]
        ring = SEMIRINGS[function.semiring]
        return evaluate_program(
            name, function.write_script("A", "n", steps), ring, {"A": "n n"}, {"A": self.matrix(ring)}
        )


def _check_square_fits(n: int, ring: Semiring) -> None:
    """Raise SQ5013 before an array is made that memory has no room for."""
    program = read_program("B := A", [MatrixInput(Name("A", Size.of("n"), Size.of("n")))], ring)
    check_memory("the edges", compile_program(program, [], {"n": n}).maintained, {"n": n})


class MatrixPower(Edges):
    @staticmethod
    def analyze(table: AnalyzeArgument, power: AnalyzeArgument) -> CallPlan:
        return plan_call(CELLS, edge_columns(table), constant_steps("the power", power))

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        yield from _cells(self.result("matrix_power", self._plan.steps), 0.0)


class Reachability(Edges):
    @staticmethod
    def analyze(table: AnalyzeArgument, hops: AnalyzeArgument) -> CallPlan:
        return plan_call(PAIRS, edge_columns(table), constant_steps("the number of hops", hops))

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        found = self.result("reachability", self._plan.steps)
        yield from zip(*(places.tolist() for places in np.nonzero(found)), strict=True)


class ShortestPaths(Edges):
    @staticmethod
    def analyze(table: AnalyzeArgument, hops: AnalyzeArgument) -> CallPlan:
        return plan_call(CELLS, edge_columns(table), constant_steps("the number of hops", hops))

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        yield from _cells(self.result("shortest_paths", self._plan.steps), np.inf)


class PageRank(Edges):
    """Power iteration from the uniform vector; a node without edges leads to all nodes."""

    @staticmethod
    def analyze(
        table: AnalyzeArgument, damping: AnalyzeArgument | None = None, steps: AnalyzeArgument | None = None
    ) -> CallPlan:
        factor = DAMPING if damping is None else float(_constant("the damping", damping))
        if not 0 <= factor <= 1:
            raise SquallError("SQ2012", f"the damping is {factor}", hint="it is a number from 0 to 1")
        return plan_call(
            VECTOR,
            edge_columns(table),
            STEPS if steps is None else constant_steps("the number of steps", steps),
            factor,
        )

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        weights = self.matrix(ARITHMETIC)
        if (weights < 0).any():
            raise SquallError("SQ5012", f"{weights.min()} is not a valid edge weight", hint="weights are not negative")
        n, out = len(weights), weights.sum(axis=1, keepdims=True)
        moves = np.divide(weights, out, out=np.zeros_like(weights), where=out > 0)
        text = pagerank("P", "n", self._plan.damping, self._plan.steps)
        ranks = evaluate_program("pagerank", text, ARITHMETIC, {"P": "n n"}, {"P": moves}) if n else np.empty((0, 1))
        yield from zip(range(n), ranks[:, 0].tolist(), strict=True)


class LeastSquares(ColumnCollector):
    """Coefficients of all other numeric columns, and of the constant 1 if an intercept is wanted."""

    @staticmethod
    def analyze(table: AnalyzeArgument, label: AnalyzeArgument, intercept: AnalyzeArgument | None = None) -> CallPlan:
        fields = _fields(table)
        numbers = [f.name for f in fields if isinstance(f.dataType, NumericType)]
        y = str(_constant("the label", label))
        if y not in numbers:
            raise SquallError("SQ2003", f'the table has no numeric column "{y}"', hint=nearest(y, numbers))
        with_one = intercept is not None and bool(_constant("the intercept", intercept))
        return plan_call(COEFFICIENTS, (y, *(name for name in numbers if name != y)), int(with_one))

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        y, *features = (column.astype(float) for column in self.arrays())
        names = list(self._plan.columns[1:])
        if self._plan.steps:
            features, names = [np.ones(len(y)), *features], ["intercept", *names]
        if not all(np.isfinite(column).all() for column in (y, *features)):
            raise SquallError("SQ5012", "a row has a value that is not finite")
        inputs = {"X": np.column_stack(features), "Y": y[:, None]}
        text = "beta := inv(X' * X) * X' * Y"
        beta = evaluate_program("ols", text, ARITHMETIC, {"X": "m n", "Y": "m 1"}, inputs)
        yield from zip(names, beta[:, 0].tolist(), strict=True)


def _cells(values: Array, zero: float) -> Iterator[tuple[Any, ...]]:
    i, j = np.nonzero(values != zero)
    return zip(i.tolist(), j.tolist(), values[i, j].tolist(), strict=True)


def edge_columns(table: AnalyzeArgument) -> tuple[str, ...]:
    """List the columns of a table of edges; SQ2005 where they are not that."""
    fields = _fields(table)[:3]
    types = (IntegralType, IntegralType, NumericType)
    fits = len(fields) >= 2 and all(isinstance(f.dataType, t) for f, t in zip(fields, types, strict=False))
    if not fits:
        has = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in fields)
        hint = "write TABLE(SELECT source, target, weight FROM …)"
        raise SquallError("SQ2005", f"edges are two integers and a number, not {has}", hint=hint)
    return tuple(f.name for f in fields)


def constant_steps(called: str, argument: AnalyzeArgument) -> int:
    """Read a constant number of steps."""
    value = _constant(called, argument)
    if not isinstance(value, int) or not 0 <= value <= MOST_STEPS:
        raise SquallError("SQ2012", f"{called} is {value}", hint=f"it is a number from 0 to {MOST_STEPS}")
    return value


def _constant(called: str, argument: AnalyzeArgument) -> Any:
    if argument.isTable or argument.value is None:
        raise SquallError("SQ2012", f"{called} is not a constant", hint="write it as a number or a text")
    return argument.value


def _fields(table: AnalyzeArgument) -> list[Any]:
    if not table.isTable:
        raise SquallError("SQ2005", "the first argument is not a table", hint="write TABLE(name)")
    assert isinstance(table.dataType, StructType)
    return list(table.dataType.fields)


FUNCTIONS: dict[str, type[ColumnCollector]] = {
    "ols": LeastSquares,
    "matrix_power": MatrixPower,
    "reachability": Reachability,
    "shortest_paths": ShortestPaths,
    "pagerank": PageRank,
}
