"""Any number of joiners as grids of powers of two, side by side (paper §4.2.2, Fig. 4a).

    20 joiners  →  16 and 4    of five tuples, four stay in the first group, one in the second; both see all five

Every tuple is sent to all groups and joined with the tuples stored there; one group stores it, group i with probability
J_i / J by a hash of its ticket. In the others it is a visitor.

Two tuples of different groups meet once if the earlier is stored and the later visits, wherever they are. The paper
forwards tuples through a machine of each block, which is only an order if the mappings of the groups divide each other.
Here tuples are ordered, by offsets for example, and a visitor stays as long as an earlier tuple may arrive: until the
end of the batch, or of a migration.
"""

from collections.abc import Sequence

import numpy as np

from squallpy.base.records import dataclass
from squallpy.physical.joins.grid import Grid, side_by_side
from squallpy.physical.joins.mapping import Mapping, Mask, Numbers, Tickets, find_square_mapping


def powers_of_two(joiners: int) -> tuple[int, ...]:
    """Decompose a number of joiners into powers of two, in descending order."""
    if joiners < 1:
        raise ValueError(f"a join has a joiner or more, not {joiners}")
    return tuple(1 << bit for bit in reversed(range(joiners.bit_length())) if joiners >> bit & 1)


def square_grids(joiners: int) -> tuple[Grid, ...]:
    """Lay out the groups as square grids, one after the other."""
    return side_by_side([find_square_mapping(power) for power in powers_of_two(joiners)])


@dataclass(frozen=True, slots=True)
class GroupHomes:
    """The sizes of the groups, from which the group that stores a tuple follows."""

    sizes: tuple[int, ...]

    def of(self, tickets: Tickets) -> Numbers:
        """Hash each ticket to its group; all bits count, so that rows and columns stay even within each group."""
        slots: Tickets = (_mix_bits(tickets) >> np.uint64(32)) * np.uint64(sum(self.sizes)) >> np.uint64(32)
        homes: Numbers = np.zeros(len(tickets), np.int64)
        for end in np.cumsum(self.sizes)[:-1].tolist():
            homes += slots >= np.uint64(end)
        return homes


def meet(stored: tuple[Mask, Mask], order: tuple[Numbers, Numbers]) -> Mask:
    """Mark the pairs that are joined here: both stored, or the earlier stored and the later visiting."""
    (one, other), (first, second) = stored, order
    return one & other | one & ~other & (first < second) | ~one & other & (second < first)


def stored_load(groups: Sequence[Mapping], r: float, s: float) -> float:
    """Compute the tuples stored by the fullest joiner: in group i, J_i / J of its grid's load."""
    total = sum(m.joiners for m in groups)
    return max(m.joiners / total * m.load(r, s) for m in groups)


def _mix_bits(tickets: Tickets) -> Tickets:
    """Mix the bits of tickets (finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        out = (tickets ^ tickets >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        out = (out ^ out >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return out ^ out >> np.uint64(31)
