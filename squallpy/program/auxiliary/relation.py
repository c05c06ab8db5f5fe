"""The auxiliary relation: a view, the output that makes rows of its groups, and the kind of those rows."""

from collections.abc import Collection
from itertools import count

from squallpy.base.records import dataclass
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Column
from squallpy.program.auxiliary.adjacent_pairs import AdjacentPairs
from squallpy.program.auxiliary.divided_rows import DividedRows
from squallpy.program.auxiliary.first_rows import FirstRowsOfGroups
from squallpy.program.auxiliary.fixpoint import Fixpoint
from squallpy.program.auxiliary.groups import Groups
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.auxiliary.range_extreme_spans import RangeExtremeSpans
from squallpy.program.auxiliary.session_rows import SessionRows
from squallpy.program.auxiliary.skyline import Skyline
from squallpy.program.auxiliary.threshold_intervals import ThresholdIntervals
from squallpy.program.auxiliary.window_rows import WindowRows
from squallpy.program.output_spec import OutputSpec
from squallpy.program.views import Ref, View

AnyAuxiliaryKind = (
    Fixpoint
    | ModelRows
    | Groups
    | ThresholdIntervals
    | WindowRows
    | SessionRows
    | FirstRowsOfGroups
    | AdjacentPairs
    | Skyline
    | RangeExtremeSpans
)


def auxiliary_name(taken: Collection[str]) -> str:
    """Return the first of n1, n2, … that no relation is called."""
    return next(name for name in (f"n{i}" for i in count(1)) if name not in taken)


@dataclass(frozen=True, slots=True)
class AuxiliaryRelation:
    """A relation with the rows that `output` computes from a view's groups.

    Before it is materialised, `view` is its definition; then `source` is the use of a view that holds it, with the
    output's variables in the place of its keys and its lanes picked.
    """

    relation: Relation
    view: View
    output: OutputSpec
    kind: AnyAuxiliaryKind
    source: Ref | None = None

    @property
    def is_by_group(self) -> bool:
        """True if each row is made of one group, whatever the others are."""
        return isinstance(self.kind, Groups)

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the relations that it is made of, in an order that is the same in every process."""
        return tuple(dict.fromkeys((*(atom.relation.name for atom in self.view.atoms), *self.kind.reads)))

    @property
    def materialised(self) -> Ref:
        """The use of the view that holds it, which there is once it is materialised."""
        assert self.source is not None, f"{self.relation.name} is not materialised"
        return self.source

    @property
    def unique_key(self) -> tuple[str, ...] | None:
        """Its key that is unique whatever the data, if there is one."""
        return self.kind.unique_key(self.materialised.variables, self.output)

    @property
    def is_indivisible(self) -> bool:
        """True if its rows cannot be spread by any field."""
        return not (self.kind.is_divisible and self.kind.has_groups and self.output.items)

    @property
    def divisions(self) -> tuple[DividedRows, ...]:
        """The ways in which partitions with copies of its view may divide its rows, the best one first."""
        return tuple(self.kind.divisions(self.materialised.variables, self.output))

    @property
    def keys_of_whole_groups(self) -> frozenset[int]:
        """The positions of the source view's keys by which it can be spread so that each partition has whole groups."""
        of_groups = {expr for _, expr in self.output.items if isinstance(expr, Column)} - {*self.kind.along}
        return frozenset(i for i, key in enumerate(self.materialised.variables) if key in of_groups)

    @property
    def text(self) -> str:
        """Its rows in terms of the source view, as EXPLAIN prints them."""
        source = self.materialised
        return self.kind.text(self.relation.name.upper(), source, self.output.with_lanes(source.picks))

    @property
    def delta_text(self) -> str:
        """Its change in terms of that of the source view, as EXPLAIN prints it."""
        return self.kind.delta_text(self.relation.name.upper(), self.materialised)
