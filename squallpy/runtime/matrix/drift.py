"""How far views have drifted from what defines them: rounding adds up from update to update, and is seen here.

A view is compared with its definition on a random vector, which costs a product by a vector for each view that the
definition reads, and never a product of matrices:

    x1 := inv(x0), x0 := X' * X      ‖X'·(X·(x1·r)) - r‖ / ‖r‖
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from squallpy.maintain.matrix.materialise import Maintained
from squallpy.maintain.matrix.nodes import Inverse, Matrix, Name, Product, Scale, Stack, Sum, Transpose
from squallpy.maintain.matrix.sizes import Sizes
from squallpy.runtime.matrix.algebra import evaluate, norm, product
from squallpy.runtime.matrix.views import Array, View


@dataclass(frozen=True)
class Probe:
    """Looks at the views of an arithmetic program."""

    maintained: Maintained
    views: Mapping[str, View]
    sizes: Sizes

    def drift(self, name: Name, random: np.random.Generator) -> float:
        """The relative difference between a view and its definition, on a vector."""
        x = random.standard_normal((name.cols.at(self.sizes), 1))
        y, value = self.times(name, x), self._definition(name.name)
        if isinstance(value, Inverse):
            return norm(self.times(value.of, y) - x) / (norm(x) or 1.0)
        defined = self.times(value, x)
        return norm(defined - y) / (norm(defined) or 1.0)

    def times(self, matrix: Matrix, x: Array, turned: bool = False) -> Array:
        """matrix · x, or matrixᵀ · x, without its values."""
        match matrix:
            case Name(name) if name in self.views:
                straight, across = self.views[name].pass_over(None, None, *(([], [x]) if turned else ([x], [])))
                seen: Array = (across if turned else straight)[0]
                return seen
            case Name(name):
                return self.times(self._definition(name), x, turned)
            case Transpose(of):
                return self.times(of, x, not turned)
            case Product((left, right)):
                first, second = (left, right) if turned else (right, left)
                return self.times(second, self.times(first, x, turned), turned)
            case Sum(terms):
                return sum((self.times(term, x, turned) for term in terms), start=np.zeros(1))
            case Scale(by, of):
                times: Array = by.at(self.sizes, self.maintained.program.ring) * self.times(of, x, turned)
                return times
            case Stack(parts) if turned:
                return np.vstack([self.times(part, x, True) for part in parts])
            case Stack(parts):
                ends = np.cumsum([part.cols.at(self.sizes) for part in parts])
                pieces = zip(parts, np.vsplit(x, ends[:-1]), strict=True)
                return sum((self.times(part, piece) for part, piece in pieces), start=np.zeros(1))
            case Inverse(of):
                size = of.rows.at(self.sizes)
                found: Array = np.linalg.solve(self.times(of, np.eye(size), turned), x)
                return found
        values = evaluate(matrix, lambda _: x, self.sizes, self.maintained.program.ring)
        return product(values.T if turned else values, x, self.maintained.program.ring)

    def _definition(self, name: str) -> Matrix:
        return next(d.value for d in self.maintained.anf.definitions if d.name.name == name)
