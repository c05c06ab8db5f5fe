"""Memory got ready ahead of its use, by a helper beside the batches.

A page is only given when it is first touched, which takes the system a microsecond, for a huge page a tenth of a
millisecond, and under a hypervisor that has to find the memory, too, five: when the index of a large pool doubles, the
batch that does it would wait for all of them. Contents are not touched, so the helper needs no lock.
"""

from _thread import start_new_thread

from squallpy.runtime.kernels.memory_regions import Region

_PIECE = 1 << 18  # words populated at a time: the system keeps other changes of the address space waiting so long

Stretch = tuple[Region, int, int]  # words of a region: the first, and behind the last


def populate(stretches: list[Stretch]) -> None:
    """Let a helper touch the memory of regions, as a hint for which nobody waits."""
    if stretches:
        start_new_thread(_populate, (stretches,))  # NB: a Thread would wait here until the helper has begun


def _populate(stretches: list[Stretch]) -> None:
    for region, first, end in stretches:
        for start in range(first, end, _PIECE):
            region.populate(start, min(start + _PIECE, end))
