"""What matrix programs are measured on: matrices whose powers stay finite, graphs, batches of updates.

batch_of_rows(1000, 100, 2.0, random)  →  U (1000, k), V (1000, k): 100 updates of k distinct rows
"""

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


def contraction(n: int, random: np.random.Generator) -> Reals:
    """A dense (n, n) matrix with a largest singular value of about 0.9."""
    return random.normal(scale=0.45 / np.sqrt(n), size=(n, n))


def observations(n: int, m: int, random: np.random.Generator) -> Reals:
    """A dense (n, m) matrix, n ≥ m, of full rank: squared, its condition number is below 100."""
    out = random.normal(scale=0.1 / np.sqrt(n), size=(n, m))
    out[np.arange(m), np.arange(m)] += 1.0
    return out


def random_graph(n: int, density: float, random: np.random.Generator) -> Truths:
    """An undirected graph: any two vertices are neighbours with this probability."""
    above = np.triu(random.random((n, n)) < density, 1)
    return above | above.T


def scale_free_graph(n: int, density: float, random: np.random.Generator) -> Truths:
    """An undirected graph with few well connected vertices: the ends of edges follow a power law (Chung and Lu)."""
    weight = np.arange(1, n + 1) ** -0.5
    chances = np.outer(weight, weight) * (density * n * n / weight.sum() ** 2)
    above = np.triu(random.random((n, n)) < chances, 1)
    shuffled = random.permutation(n)
    graph: Truths = (above | above.T)[np.ix_(shuffled, shuffled)]
    return graph


def edge(n: int, random: np.random.Generator) -> tuple[int, int]:
    """Two vertices of n."""
    i, j = random.choice(n, 2, replace=False)
    return int(i), int(j)


def lengths(graph: Truths, random: np.random.Generator) -> Reals:
    """The edges' lengths, whole numbers from 1 to 100, the same both ways; ∞ where there is none."""
    one_way = np.where(np.triu(graph), random.integers(1, 101, graph.shape), np.inf)
    return np.minimum(one_way, one_way.T)


def row_update(n: int, m: int, random: np.random.Generator) -> tuple[Reals, Reals]:
    """One row changes: U (n, 1) with a 1, V (m, 1)."""
    U = np.zeros((n, 1))
    U[random.integers(n)] = 1.0
    return U, random.normal(scale=0.1 / np.sqrt(m), size=(m, 1))


def batch_of_rows(n: int, size: int, zipf: float, random: np.random.Generator) -> tuple[Reals, Reals]:
    """So many updates of rows of an (n, n) matrix, those of a row merged; rows are chosen by Zipf's law, 0: alike."""
    chances = np.arange(1.0, n + 1) ** -zipf
    rows, times = np.unique(random.choice(n, size, p=chances / chances.sum()), return_counts=True)
    U = np.zeros((n, len(rows)), order="F")
    U[rows, np.arange(len(rows))] = 1.0
    return U, np.asfortranarray(random.normal(scale=0.01 / np.sqrt(n), size=(n, len(rows))) * np.sqrt(times))
