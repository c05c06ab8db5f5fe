"""Figures of the papers: Lago (`squall-lago-thesis` §5.6, T) and LINVIEW (L), as ratios of re-evaluation to a trigger.

Their machines are not ours and their axes are partly lost: only the ratios, and what they grow with, are comparable.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """What was run, and how many times faster than re-evaluation: from the smallest matrix to the largest."""

    where: str
    setting: str
    least: float
    most: float


FIGURES = {
    "ols": Figure("T 5.15a", "X n × m, n = 2 m, Octave on 12 cores", 42.2, 248.2),
    "ols square": Figure("T 5.15b", "X n × n, Octave on 12 cores", 110.5, 596.7),
    "gradient descent": Figure("T 5.15c", "16 steps, X and Y n × n, Spark on 100 nodes", 6.2, 85.8),
    "reachability": Figure(
        "T 5.17a", "4 hops, symmetric bits, scale-free graphs of density 0.01, one thread", 1.6, 7.7
    ),
    "shortest paths": Figure("T 5.17b", "4 hops, dense", 23.16, 173.0),
    "affine iteration": Figure("L 3h", "T := A·T + B: a trigger with skip 4, re-evaluation linear, Spark", 36.7, 36.7),
}

# T table 5.3: seconds for a batch of 1,000 row updates of P¹⁶ whose rows follow Zipf's law, and for re-evaluation
ZIPF = (5.0, 4.0, 3.0, 2.0, 1.0, 0.0)
BATCHES = {
    "Octave, n = 10,000": (6.3, 6.8, 7.5, 10.9, 68.4, 236.5),
    "Spark, n = 30,000": (28.1, 41.5, 67.3, 186.1, 508.9, 1678.8),
}
REEVALUATED = {"Octave, n = 10,000": 99.1, "Spark, n = 30,000": 203.4}

MEMORY = 3.3  # T 5.18b: P, P², P⁴, P⁸ and P¹⁶ against what re-evaluation of P¹⁶ keeps
SMALLER = 62.0  # T 5.16d: bits against doubles
BITS_FASTER = (3.0, 5.0)  # T 5.16c: reachability on symmetric bits against dense

# T table 5.2: iterations, seconds to compile, rules applied, share of equivalence rules, of programs seen again
SEARCHES = (
    ("ols", None, 36.0, 10_869_640, 0.07, 0.9098),
    ("gradient descent", 4, 0.567, 4_526, 0.07, 0.7556),
    ("gradient descent", 16, 0.944, 28_826, 0.04, 0.8108),
    ("gradient descent", 128, 15.139, 1_328_854, 0.008, 0.8776),
    ("gradient descent", 256, 128.599, 3_841_206, 0.005, 0.8735),
)


def batch_ratios(engine: str) -> dict[float, float]:
    """Zipf's exponent → how many times faster than re-evaluation a batch was."""
    return {zipf: REEVALUATED[engine] / seconds for zipf, seconds in zip(ZIPF, BATCHES[engine], strict=True)}
