"""Memory that the machine has had before, given to what runs: a virtual machine may get each new page from its host.

    with kept():                    10 GB are touched, then given back bit by bit
        subprocess.run(…)           what this touches for the first time, somebody has touched before

A host that takes back the memory its guests do not use, as of functions and of sandboxes, gives it again when it is
touched, page by page, 3 to 7 ms each of 2 MB. Linux hands out first what was freed last, so a process beside that
frees what it has touched, a bit faster than the runs take it, makes of such a machine one that keeps its memory. It
frees a few huge pages at a time: of those that were then touched, 30 a second, the host had to find up to 4 in 100;
where 64 MB of small pages were freed at once, 34 to 62, and with nothing beside 20 to 51.
"""

import mmap
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

PIECES = 1280
PIECE = 8 << 20  # bytes
PAUSE = 0.05  # seconds; all is given back after 64


@contextmanager
def kept() -> Iterator[None]:
    """Within, memory is given back that was touched before; there is to be twice as much as that, free."""
    holder = subprocess.Popen([sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    assert holder.stdout.readline(), "no memory to be touched"
    try:
        yield
    finally:
        holder.kill()
        holder.communicate()


def _touched() -> mmap.mmap:
    """A piece of memory, each page of it touched."""
    memory = mmap.mmap(-1, PIECE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    for page in range(0, PIECE, mmap.PAGESIZE):
        memory[page] = 1
    return memory


def main() -> None:
    """Touch, say so, and give back."""
    pieces = [_touched() for _ in range(PIECES)]
    print("touched", flush=True)
    while pieces:
        time.sleep(PAUSE)
        pieces.pop().close()


if __name__ == "__main__":
    main()
