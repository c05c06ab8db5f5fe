"""Join graph: the relations of an equi-join as sets of variables, and the variables whose statistics are wanted.

SELECT x, u FROM fact NATURAL JOIN dim   →   fact(k, x), dim(k, u), features x, u
"""

from itertools import chain

from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column


@dataclass(frozen=True, slots=True)
class Leaf:
    """An occurrence of a relation in FROM; columns that are equal in all results are one variable.

    `columns` are its own names of the variables, where they differ; `unread` are columns that the query does not read;
    `primary_key` is empty if none is declared, or not all of it is read. `has_deletes` if its rows may go.
    """

    name: str
    variables: tuple[Column, ...]
    is_stream: bool = True
    primary_key: tuple[Column, ...] = ()
    columns: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    has_deletes: bool = False

    def __post_init__(self) -> None:
        assert len(set(self.variables)) == len(self.variables), self.name
        assert len(self.columns) in (0, len(self.variables)), self.name
        if not self.columns:
            object.__setattr__(self, "columns", tuple(v.name for v in self.variables))


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """The leaves of a join, the features (lifted variables) in the order of SELECT, and the free variables."""

    leaves: tuple[Leaf, ...]
    features: tuple[Column, ...]
    free: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        assert len({leaf.name.lower() for leaf in self.leaves}) == len(self.leaves)
        for chosen in (self.features, self.free):
            assert len(set(chosen)) == len(chosen) and set(chosen) <= set(self.variables)

    @property
    def variables(self) -> tuple[Column, ...]:
        """The distinct variables, by leaf and position."""
        return tuple(dict.fromkeys(chain.from_iterable(leaf.variables for leaf in self.leaves)))

    def meanings(self) -> dict[str, set[Column]]:
        """Map each name, in lower case, to the variables that it may mean: k or fact.k; none where it is not read."""
        found: dict[str, set[Column]] = {}
        for leaf in self.leaves:
            for column in leaf.unread:
                for name in (column, f"{leaf.name}.{column}"):
                    found.setdefault(name.lower(), set())
            for column, v in zip(leaf.columns, leaf.variables, strict=True):
                for name in (column, f"{leaf.name}.{column}", v.name):
                    found.setdefault(name.lower(), set()).add(v)
        return found

    def names(self) -> dict[Column, str]:
        """Name each variable, by its leaf where the name of its column means another one, too: dst   →   e1.dst"""
        meanings, named = self.meanings(), dict[Column, str]()
        for leaf in self.leaves:
            for column, v in zip(leaf.columns, leaf.variables, strict=True):
                named.setdefault(v, v.name if len(meanings[v.name.lower()]) == 1 else f"{leaf.name}.{column}")
        return named
