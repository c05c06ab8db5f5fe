"""Memory of a process and all that it started, from /proc; zeros where there is none."""

from dataclasses import dataclass
from pathlib import Path


@dataclass
class Memory:
    """Megabytes. `rss` counts a page once per process that maps it, `pss` once."""

    rss: float = 0.0
    pss: float = 0.0

    def grow(self, other: "Memory") -> None:
        self.rss, self.pss = max(self.rss, other.rss), max(self.pss, other.pss)


def of_tree(root: int) -> Memory:
    total = Memory()
    for pid in _tree(root):
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Rss:"):
                    total.rss += int(line.split()[1]) / 1024
                elif line.startswith("Pss:"):
                    total.pss += int(line.split()[1]) / 1024
        except OSError:  # it has ended
            continue
    return total


def _tree(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        try:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                waiting += [int(child) for child in children.read_text().split()]
        except OSError:  # it, or a thread of it, has ended
            continue
    return found
