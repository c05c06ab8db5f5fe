"""Table functions of graphs: what matrix program each of them is, over a matrix of edges."""

from dataclasses import dataclass

MOST_STEPS = 10_000  # of an iteration


@dataclass(frozen=True, slots=True)
class GraphFunction:
    """A program in a semiring; `text` of one output R, with the matrix {A}, its dimension {n}, and how many {steps}."""

    semiring: str
    text: str
    called: str
    """What users call the number of steps."""
    pairs: bool = False
    """Its result has no values: a cell is there, or it is not."""

    def written(self, matrix: str, dimension: str, steps: int) -> str:
        return self.text.format(A=matrix, n=dimension, steps=steps)


_HOPS = "R := iterate[{steps}](eye({n}))(acc => {A} * acc + eye({n}))"  # in at most so many, also in none
GRAPHS = {
    "matrix_power": GraphFunction("arithmetic", "R := {A}^{steps}", "the power"),
    "reachability": GraphFunction("boolean", _HOPS, "the number of hops", pairs=True),
    "shortest_paths": GraphFunction("min_plus", _HOPS, "the number of hops"),
}
