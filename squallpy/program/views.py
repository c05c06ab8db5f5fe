"""Materialised views as sums of monomials, and how statements refer to them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from squallpy.base.records import dataclass
from squallpy.base.rings import LaneRing, Ring
from squallpy.logical.expressions import Column, Expr
from squallpy.program.calculus import Factor, Lane, Rel, rename_column, rename_factor, ring


@dataclass(frozen=True, slots=True)
class Monomial:
    """body ⋈ ⟨lanes⟩; a lane that is None adds nothing."""

    body: tuple[Factor, ...]
    lanes: tuple[Lane | None, ...]
    atoms: tuple[Rel, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "atoms", tuple(f for f in self.body if isinstance(f, Rel)))


def renamed_filters(term: Monomial, names: Mapping[Column, Column]) -> frozenset[Factor]:
    """Rename the factors of a term that are no atoms; variables that `names` lacks stay."""
    ids: dict[int, Expr] = {v.id: name for v, name in names.items()}
    return frozenset(rename_factor(factor, ids) for factor in term.body if not isinstance(factor, Rel))


@dataclass(frozen=True, slots=True)
class View:
    """Sum_[keys](monomial + …): a materialised view, or (over a delta atom) a pre-aggregated batch (§3.3)."""

    name: str
    keys: tuple[Column, ...]
    terms: tuple[Monomial, ...]
    atoms: tuple[Rel, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "atoms", tuple(atom for term in self.terms for atom in term.atoms))

    @property
    def degree(self) -> int:
        """Number of relation atoms that the view joins, its complexity."""
        return max(len(term.atoms) for term in self.terms)

    @property
    def rings(self) -> tuple[LaneRing, ...]:
        """Smallest ring for the sums of each lane."""
        columns = zip(*(term.lanes for term in self.terms), strict=True)
        return tuple(_widest([ring(lane) for lane in column if lane is not None]) for column in columns)


def _widest(rings: list[LaneRing]) -> LaneRing:
    """Return the ring that has all sums of a lane; cofactor matrices are of one term."""
    return max(ring for ring in rings if isinstance(ring, Ring)) if isinstance(rings[0], Ring) else rings[0]


def index_atoms(views: Iterable[View]) -> Mapping[str, list[tuple[Rel, Monomial, View]]]:
    """Index the atoms of views by the name of their relation, each with its term and its view."""
    found = defaultdict[str, list[tuple[Rel, Monomial, View]]](list)
    for view in views:
        for term in view.terms:
            for atom in term.atoms:
                found[atom.relation.name].append((atom, term, view))
    return found


@dataclass(frozen=True, slots=True)
class RowFields:
    """The fields read from an auxiliary relation's row, with their variables; `is_before`: as before the batch."""

    relation: str
    fields: tuple[tuple[str, Column], ...]
    is_before: bool


@dataclass(frozen=True, slots=True)
class Ref:
    """A use of a view or delta: the variables of its keys, and the lane that goes into each lane.

    A view that the trigger changes is read as it is after that (`is_after`), or as it was before. With `row`, it reads
    the row that an auxiliary relation makes of the view's payload.
    """

    name: str
    variables: tuple[Column, ...]
    picks: tuple[int, ...]
    row: RowFields | None = None
    is_after: bool = False

    @property
    def bound_variables(self) -> tuple[Column, ...]:
        """All variables that it binds."""
        return (*self.variables, *(v for _, v in self.row.fields)) if self.row else self.variables


def rename_ref(ref: Ref, names: Mapping[int, Expr]) -> Ref:
    """Replace the variables of a use; `names` are columns by the ids of those that they replace."""
    row = ref.row and replace(ref.row, fields=tuple((title, rename_column(v, names)) for title, v in ref.row.fields))
    return replace(ref, variables=tuple(rename_column(v, names) for v in ref.variables), row=row)
