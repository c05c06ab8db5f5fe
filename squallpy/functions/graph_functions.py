"""Table functions of graphs: the matrix program of each, over a matrix of edges, or of edges divided by row sums."""

from squallpy.base.records import dataclass

MOST_STEPS = 10_000  # of an iteration


@dataclass(frozen=True, slots=True)
class GraphFunction:
    """A program in a semiring; `text` of one output R, with the matrix {A}, its dimension {n}, and how many {steps}."""

    semiring: str
    text: str
    called: str
    """Name its argument in messages."""
    pairs: bool = False
    """Its result has no values: a cell is there, or it is not."""

    def write_script(self, matrix: str, dimension: str, steps: int) -> str:
        return self.text.format(A=matrix, n=dimension, steps=steps)


_HOPS = "R := iterate[{steps}](eye({n}))(acc => {A} * acc + eye({n}))"  # paths of at most that many hops, none included
GRAPHS = {
    "matrix_power": GraphFunction("arithmetic", "R := {A}^{steps}", "the power"),
    "reachability": GraphFunction("boolean", _HOPS, "the number of hops", pairs=True),
    "shortest_paths": GraphFunction("min_plus", _HOPS, "the number of hops"),
}


DAMPING, STEPS = 0.85, 50  # defaults of PageRank


def pagerank(shares: str, dimension: str, damping: float, steps: int) -> str:
    """Write PageRank as power iteration from the uniform vector.

    A fraction `damping` of each node's rank follows its out-edges by weight; the rest, and the rank of dangling nodes,
    is spread uniformly.
    """
    alike = f"fill({dimension}, 1, 1 / {dimension})"
    step = f"let x := {damping!r} * ({shares}' * r) in x - {alike} * (ones(1, {dimension}) * x) + {alike}"
    return f"R := iterate[{steps}]({alike})(r => {step})"
