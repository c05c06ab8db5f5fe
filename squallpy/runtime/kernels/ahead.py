"""Memory got ready ahead of its use, by a helper beside the batches.

A page is only given when it is first touched, which takes the system a microsecond, for a huge page a tenth of a
millisecond, and under a hypervisor that has to find the memory, too, five: when the index of a large pool doubles, the
batch that does it would wait for all of them. Contents are not touched, so the helper needs no lock.
"""

from threading import Thread

from squallpy.runtime.kernels.storage import Region

_PIECE = 1 << 18  # words populated at a time: the system keeps other changes of the address space waiting so long

Stretch = tuple[Region, int, int]  # words of a region: the first, and behind the last


def populate(stretches: list[Stretch]) -> None:
    """Have a helper ask for the memory of stretches; a hint, which nobody waits for."""
    if stretches:
        Thread(target=_populate, args=(stretches,), name="squallpy-ahead", daemon=True).start()


def _populate(stretches: list[Stretch]) -> None:
    for region, first, end in stretches:
        for start in range(first, end, _PIECE):
            region.populate(start, min(start + _PIECE, end))
