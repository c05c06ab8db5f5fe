"""Areas: one data structure in memory, as a head and growable regions, and the frame by which kernels find them.

    head   (mapped, shared)   generation | scalars of the structure (count, …) | words of each region
    frame  (this process)     address of head | constants (widths, …) | address, words of each region | scratch

All that changes lives in the head, so a second process that maps the same regions goes on where the first stopped; if
a region grew there, the generation in the head differs from ours and the frame is made anew. All zero
is the empty structure.
"""

from collections.abc import Callable, Sequence

import numpy as np

from squallpy.runtime.kernels.memory_prefault import populate
from squallpy.runtime.kernels.memory_regions import Region, Storage, Words

HEAD = 0  # frame[0]: address of the head
CONSTANTS = 1  # frame[1:]: constants
GENERATION = 0  # head[0]: how often any region grew, plus one
SCALARS = 1  # head[1:]: scalars


class Area:
    """The regions of one data structure under `name` in `storage`; `regions` maps names to words at birth."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        regions: dict[str, int],
        *,
        scalars: int,
        constants: Sequence[int] = (),
        scratch: int = 0,
    ) -> None:
        self._storage = storage
        self._sizes = SCALARS + scalars  # where words begin in the head
        self._places = CONSTANTS + len(constants)  # where addresses and words begin in the frame
        self.frame: Words = np.zeros(self._places + 2 * len(regions) + scratch, np.int64)
        self.frame[CONSTANTS : self._places] = constants
        self.address = self.frame.ctypes.data
        head = storage.region(f"{name}.head", self._sizes + len(regions))
        self.frame[HEAD] = head.address
        self.head = memoryview(head.array().data).cast("B").cast("q")
        self._regions: list[Region] = []
        for r, (region, words) in enumerate(regions.items()):
            self._regions.append(storage.region(f"{name}.{region}", words))
            if self.head[GENERATION] == 0:
                self.head[self._sizes + r] = self._regions[r].words
        if self.head[GENERATION] == 0:
            self.head[GENERATION] = 1
        self.on_change: Callable[[], None] | None = None  # for what constants of the frame follow from the head
        self._remap()

    def current(self) -> Words:
        """Return the frame, brought up to date where another process let a region grow."""
        if self._storage.shared and self.head[GENERATION] != self._generation:
            self._remap()
        return self.frame

    def grow(self, region: int, words: int) -> None:
        """Extend a region in place."""
        self._regions[region].grow(words)
        self._changed(region)

    def get_ready(self, growing: list[tuple[int, int, int]]) -> None:
        """Let a helper prepare memory of regions that will soon be written, given as (region, first word, end)."""
        if self._storage.shared:  # what is there is for all to see
            return
        for r, _, end in growing:
            if end > self.words(r):
                self.grow(r, max(end, 2 * self.words(r)))
        populate([(self._regions[r], first, end) for r, first, end in growing])

    def words(self, region: int) -> int:
        """Return how many words a region has."""
        return self._regions[region].words

    def where(self, region: int) -> int:
        """Return the address of a region."""
        return self._regions[region].address

    def array(self, region: int) -> Words:
        """View a region's words as an array."""
        return self._regions[region].array()

    def _changed(self, r: int) -> None:
        self.head[self._sizes + r] = self._regions[r].words
        self.head[GENERATION] += 1
        self._place(r)

    def _remap(self) -> None:
        for r, region in enumerate(self._regions):
            words = self.head[self._sizes + r]
            if region.words < words:
                region.grow(words)
            self._place(r)
        if self.on_change:
            self.on_change()

    def _place(self, r: int) -> None:
        self.frame[self._places + 2 * r] = self._regions[r].address
        self.frame[self._places + 2 * r + 1] = self._regions[r].words
        self._generation = self.head[GENERATION]
