"""Where a pool's kernels find things in its frame and head (see `area.py` for the two)."""

from typing import Final

# Constants in the frame.
KEY: Final = 1  # words in a key
PAYLOAD: Final = 2  # words in a payload
LANES: Final = 3  # lanes in a payload
SLICES: Final = 4  # secondary indexes
PLACES: Final = 5  # where (address, words) of the regions begin: index, keys, words, then four for each slice
BOUNDS: Final = 6  # where the slices' columns begin: for each slice how many, then which, in KEY + 1 words
SCRATCH: Final = 7  # where the scratch begins: of a chunk's rows hashes and positions, of new records both, a key
RINGS: Final = 8  # ring of each lane, from here

# Regions, as offsets from PLACES; words are one further.
INDEX: Final = 0
KEYS: Final = 2
WORDS: Final = 4
SLICE: Final = 6  # first region of slice 0: its index, groups, arena, where
SLICE_STRIDE: Final = 8
GROUPS: Final = 2
ARENA: Final = 4
WHERE: Final = 6

# Scalars in the head.
COUNT: Final = 1  # live records: they are numbered 0 … COUNT − 1 without holes
SLICE_STATE: Final = 2  # for each slice STATE words:
LIVE: Final = 0  # groups in use
TOP: Final = 1  # groups ever used
FREE: Final = 2  # first free group + 1
ARENA_TOP: Final = 3  # arena entries ever used, of 32 bits
ARENA_FREE: Final = 4  # for each size class, the first free block + 1
STATE: Final = 40

# A group: the records that agree on a slice's columns, as a posting of record numbers in the arena.
START: Final = 0  # where the posting begins
LENGTH: Final = 1
SHAPE: Final = 2  # its size class (there is room for 2 ** class), plus DISORDER if it is perhaps not ascending
GROUP_KEY: Final = 3  # the columns' values, from here
SMALLEST: Final = 2  # size class of a new posting
DISORDER: Final = 64

CHUNK: Final = 64  # rows whose cache lines are asked for together
ARENA_ROOM: Final = 4  # arena entries that a posting's blocks, old ones included, take at most for each record
