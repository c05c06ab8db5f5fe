"""Registry of the maintainers of auxiliary relations, by kind."""

from typing import assert_never

from squallpy.physical.plan import AuxiliaryPlan, Feed, Plan
from squallpy.program.auxiliary.adjacent_pairs import AdjacentPairs
from squallpy.program.auxiliary.first_rows import FirstRowsOfGroups
from squallpy.program.auxiliary.fixpoint import Fixpoint
from squallpy.program.auxiliary.groups import Groups
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.auxiliary.range_extreme_spans import RangeExtremeSpans
from squallpy.program.auxiliary.relation import AnyAuxiliaryKind
from squallpy.program.auxiliary.session_rows import SessionRows
from squallpy.program.auxiliary.skyline import Skyline
from squallpy.program.auxiliary.threshold_intervals import ThresholdIntervals
from squallpy.program.auxiliary.window_rows import WindowRows
from squallpy.runtime.auxiliary.adjacent_pairs import PairMaintainer
from squallpy.runtime.auxiliary.first_rows import FirstRowsMaintainer
from squallpy.runtime.auxiliary.fixpoint import FixpointMaintainer
from squallpy.runtime.auxiliary.fixpoint_groups import GroupedFixpointMaintainer
from squallpy.runtime.auxiliary.fixpoint_iterations import IteratedFixpointMaintainer
from squallpy.runtime.auxiliary.fixpoint_leaves import Own
from squallpy.runtime.auxiliary.groups import GroupMaintainer
from squallpy.runtime.auxiliary.maintainer import FIRST_BATCH_LAYOUT, Maintainer
from squallpy.runtime.auxiliary.model_rows import ModelMaintainer
from squallpy.runtime.auxiliary.range_extreme_spans import SpanMaintainer
from squallpy.runtime.auxiliary.session_rows import SessionMaintainer
from squallpy.runtime.auxiliary.skyline import SkylineMaintainer
from squallpy.runtime.auxiliary.threshold_intervals import IntervalMaintainer
from squallpy.runtime.auxiliary.window_rows import WindowMaintainer
from squallpy.runtime.state.state_store import PoolLayout


def maintainer_of(kind: AnyAuxiliaryKind) -> type[Maintainer]:
    """Return the class that maintains the rows of a kind."""
    match kind:
        case Groups():
            return GroupMaintainer
        case ThresholdIntervals():
            return IntervalMaintainer
        case WindowRows():
            return WindowMaintainer
        case SessionRows():
            return SessionMaintainer
        case FirstRowsOfGroups():
            return FirstRowsMaintainer
        case AdjacentPairs():
            return PairMaintainer
        case Skyline():
            return SkylineMaintainer
        case RangeExtremeSpans():
            return SpanMaintainer
        case ModelRows():
            return ModelMaintainer
        case Fixpoint():
            return FixpointMaintainer
    assert_never(kind)


def _fixpoint_maintainer(kind: Fixpoint) -> type[FixpointMaintainer]:
    """Return the class that maintains the rows of a fixpoint by rules like these."""
    return GroupedFixpointMaintainer if kind.stable_columns else IteratedFixpointMaintainer


def open_maintainer(feed: Feed, aux: AuxiliaryPlan, own: Own | None = None) -> Maintainer:
    """Return the maintainer of the rows of an auxiliary relation, or of a partition's `own` rows of a fixpoint."""
    if isinstance(aux.kind, Fixpoint):
        return _fixpoint_maintainer(aux.kind)(feed, aux, own)
    assert own is None, "partitions divide the rows of fixpoints only"
    return maintainer_of(aux.kind)(feed, aux)


def _layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
    chosen = _fixpoint_maintainer(aux.kind) if isinstance(aux.kind, Fixpoint) else maintainer_of(aux.kind)
    return chosen.layouts(feed, aux)


def auxiliary_layouts(plan: Plan, *, on_driver: bool = False) -> tuple[PoolLayout, ...]:
    """Return the pools that maintainers keep besides views, those of partitions or of the driver."""
    auxiliary = [
        (feed, feed.auxiliary)
        for feed in plan.feeds
        if feed.auxiliary and (feed.auxiliary.source.name in plan.driver_pools) == on_driver
    ]
    own = (layout for feed, aux in auxiliary for layout in _layouts(feed, aux))
    return (FIRST_BATCH_LAYOUT, *own) if auxiliary else ()
