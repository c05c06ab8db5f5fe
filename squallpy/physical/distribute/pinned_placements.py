"""Placements pinned by the user: `--set partition.M_S=b`.

pinned_placements(program, [("M_S", "b")])   →   {"M_S": (0,)}
"""

from collections.abc import Iterable, Sequence

from squallpy.base.errors import SquallError, nearest
from squallpy.physical.distribute.distributed_program import Placement
from squallpy.physical.distribute.location_tags import EVERYWHERE
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.variable_names import Names
from squallpy.program.views import View


def pinned_placements(program: TriggerProgram, pins: Iterable[tuple[str, str]]) -> dict[str, Placement]:
    """Read pinned placements; SQ7001 for an unknown view, SQ7003 for an impossible placement."""
    views = {view.name.lower(): view for view in program.views}
    placements: dict[str, Placement] = {}
    for name, text in pins:
        view = views.get(name.lower())
        if view is None:
            known = [view.name for view in program.stored]
            hint = nearest(name, known) or "explain physical lists them"
            raise SquallError("SQ7001", f'partition.{name}: the query has no view "{name}"', hint=hint)
        if view in program.results:
            raise SquallError("SQ7003", f"partition.{name}: {view.name} is the result, which is on the driver")
        placements[view.name] = (
            _everywhere(view, program) if text.strip().lower() == "everywhere" else _by_keys(view, text, program)
        )
    return placements


def _everywhere(view: View, program: TriggerProgram) -> Placement:
    """Place copies at every partition, which divide the rows of a fixpoint that are made of them."""
    ways = (way for aux in program.auxiliary if aux.materialised.name == view.name for way in aux.divisions)
    return next((way for way in ways if not way.hashed), EVERYWHERE)


def _by_keys(view: View, text: str, program: TriggerProgram) -> Placement:
    names = Names(view.keys)
    known, positions = {names(key): i for i, key in enumerate(view.keys)}, []
    for key in (part.strip() for part in text.split(",")):
        if key not in known:
            hint = nearest(key, known) if known else "everywhere is all that it can be"
            raise SquallError("SQ7003", f'partition.{view.name}: the view has no key "{key}"', hint=hint)
        positions.append(known[key])
    if reason := split_groups(program, view, positions):
        raise SquallError("SQ7003", f"partition.{view.name}={text}: {reason[0]}", hint=reason[1])
    return tuple(dict.fromkeys(positions))


def split_groups(program: TriggerProgram, view: View, positions: Sequence[int]) -> tuple[str, str] | None:
    """Tell why a view cannot be spread by some of its keys, and what it can be; None if it can."""
    names = Names(view.keys)
    for aux in (aux for aux in program.auxiliary if aux.materialised.name == view.name):
        if aux.is_indivisible or not aux.keys_of_whole_groups.issuperset(positions):
            allowed = [names(view.keys[i]) for i in sorted(aux.keys_of_whole_groups) if not aux.is_indivisible]
            hint = f"spread it by {' or '.join(allowed)}" if allowed else "everywhere is all that it can be"
            return f"the groups of {aux.relation.name.upper()} would be split", hint
    return None
