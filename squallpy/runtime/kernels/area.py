"""Areas: one data structure in memory, as a head and growable regions, and the frame by which kernels find them.

    head   (mapped, shared)   generation | scalars of the structure (count, …) | words, edition of each region
    frame  (this process)     address of head | constants (widths, …) | address, words of each region | scratch

All that changes lives in the head, so a second process that maps the same regions goes on where the first stopped; if
a region grew or was replaced there, the generation in the head differs from ours and the frame is made anew. All zero
is the empty structure.
"""

from collections.abc import Sequence

import numpy as np

from squallpy.runtime.kernels.ahead import populate
from squallpy.runtime.kernels.storage import Region, Storage, Words

HEAD = 0  # frame[0]: address of the head
CONSTANTS = 1  # frame[1:]: constants
GENERATION = 0  # head[0]: how often any region grew or was replaced, plus one
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
        self._storage, self._name, self._names = storage, name, tuple(regions)
        self._sizes = SCALARS + scalars  # where words and editions begin in the head
        self._places = CONSTANTS + len(constants)  # where addresses and words begin in the frame
        self.frame: Words = np.zeros(self._places + 2 * len(regions) + scratch, np.int64)
        self.frame[CONSTANTS : self._places] = constants
        self.address = self.frame.ctypes.data
        head = storage.region(f"{name}.head", self._sizes + 2 * len(regions))
        self.frame[HEAD] = head.address
        self.head = memoryview(head.array().data).cast("B").cast("q")
        self._regions: list[Region] = []
        self._spare: dict[int, Region] = {}  # what regions will be replaced with
        self._editions: list[int] = []
        for r, (region, words) in enumerate(regions.items()):
            edition = self.head[self._sizes + 2 * r + 1]
            self._regions.append(storage.region(f"{name}.{region}.{edition}", words))
            self._editions.append(edition)
            if self.head[GENERATION] == 0:
                self.head[self._sizes + 2 * r] = self._regions[r].words
        if self.head[GENERATION] == 0:
            self.head[GENERATION] = 1
        self._remap()

    def current(self) -> Words:
        """The frame, after another process's growth if there was any."""
        if self._storage.shared and self.head[GENERATION] != self._generation:
            self._remap()
        return self.frame

    def grow(self, region: int, words: int) -> None:
        """Extend a region in place."""
        self._regions[region].grow(words)
        self._changed(region)

    def replace(self, region: int, words: int) -> tuple[Region, Region]:
        """Put an empty region of another size in a region's place: (old, new), for the caller to carry over."""
        old, edition = self._regions[region], self._editions[region]
        new = self._spare.pop(region, None)
        if new is None or new.words < words:
            new = self._storage.region(f"{self._name}.{self._names[region]}.{edition + 1}", words)
        self._storage.drop(f"{self._name}.{self._names[region]}.{edition}")
        self._regions[region], self._editions[region] = new, edition + 1
        self._changed(region)
        return old, new

    def get_ready(self, growing: list[tuple[int, int, int]], replaced: dict[int, int]) -> None:
        """Have memory got ready: words of regions, (region, first, end), and what will replace some, region → words."""
        if self._storage.shared:  # what is there is for all to see
            return
        for r, _, end in growing:
            if end > self.words(r):
                self.grow(r, max(end, 2 * self.words(r)))
        stretches = [(self._regions[r], first, end) for r, first, end in growing]
        for r, words in replaced.items():
            if r not in self._spare:
                name = f"{self._name}.{self._names[r]}.{self._editions[r] + 1}"
                self._spare[r] = self._storage.region(name, words)
                stretches.append((self._spare[r], 0, self._spare[r].words))
        populate(stretches)

    def words(self, region: int) -> int:
        """Size of a region."""
        return self._regions[region].words

    def array(self, region: int) -> Words:
        """A region's words, as a view."""
        return self._regions[region].array()

    def _changed(self, r: int) -> None:
        self.head[self._sizes + 2 * r], self.head[self._sizes + 2 * r + 1] = self._regions[r].words, self._editions[r]
        self.head[GENERATION] += 1
        self._place(r)

    def _remap(self) -> None:
        for r, region in enumerate(self._regions):
            words, edition = self.head[self._sizes + 2 * r], self.head[self._sizes + 2 * r + 1]
            if edition != self._editions[r]:
                self._regions[r] = self._storage.region(f"{self._name}.{self._names[r]}.{edition}", words)
                self._editions[r] = edition
            elif region.words < words:
                region.grow(words)
            self._place(r)

    def _place(self, r: int) -> None:
        self.frame[self._places + 2 * r] = self._regions[r].address
        self.frame[self._places + 2 * r + 1] = self._regions[r].words
        self._generation = self.head[GENERATION]
