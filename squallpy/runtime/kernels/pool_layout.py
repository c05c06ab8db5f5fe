"""Layout of a pool's frame and head, as its kernels read it (see `memory_area.py` for the two)."""

from typing import Final

# Constants in the frame.
KEY: Final = 1  # words in a key
PAYLOAD: Final = 2  # words in a payload
LANES: Final = 3  # lanes in a payload
SLICES: Final = 4  # secondary indexes
PLACES: Final = 5  # where (address, words) of the regions begin: index, keys, words, then three for each slice
BOUNDS: Final = 6  # where the slices' columns begin, behind the index's: how many, then which, in KEY + 1 words each
SCRATCH: Final = (
    7  # where the scratch begins: a chunk's hashes and positions, twice that for who comes or goes, two keys
)
MARKS: Final = 8  # address of a byte for each page of records that is watched (`page_watch`),
WATCHED: Final = 9  # and how many there are
RUNS: Final = 10  # 1: the index may be by runs of records that agree on the columns of slice 0
UNIT: Final = 11  # bytes of a word of a record's key (`stored_keys`),
STRIDE: Final = 12  # and of its key
BROAD: Final = 13  # bytes of a record's payload (`stored_payloads`),
PAYLOAD_ROOMS: Final = 14  # and where rooms for payloads that are read begin
RINGS: Final = 15  # ring of each lane, from here

# Regions, as offsets from PLACES; words are one further.
INDEX: Final = 0
KEYS: Final = 2
WORDS: Final = 4
SLICE: Final = 6  # first region of slice 0: its index, arena, where
SLICE_STRIDE: Final = 6
ARENA: Final = 2
WHERE: Final = 4

# Scalars in the head.
COUNT: Final = 1  # live records: they are numbered 0 … COUNT − 1 without holes
GROWING: Final = 2  # does the table of any index grow?
APPENDED: Final = 3  # 1: its records are in no index
BY_RECORD: Final = 4  # 1: the index has an entry for each record, also of a pool in which it might be by runs
ENTRIES: Final = 5  # of an index by runs
PASSED: Final = 6  # records and entries that were passed where rows were added, above what is allowed
WIDENED: Final = 7  # 1: words of keys have 64 bits, not 32
UNFIT: Final = 8  # 1: a key is to be added that words of 32 bits do not hold; 2: a payload that narrow ones do not
BROADENED: Final = 9  # 1: payloads are not narrow
SLICE_STATE: Final = 10  # for each slice STATE words:
LIVE: Final = 0  # entries of its index
TOP: Final = 1  # pieces of its arena ever used
CLASSES: Final = 2  # a bit for each size class of which a block is free
VACANT: Final = 3  # for each size class, the first free block + 1
REFERENCED: Final = 38  # 1: `where` has back references, the place of each record in its posting
SEARCHED: Final = 39  # places that were looked at for records that go, while there are none
STATE: Final = 40

# A block of an arena, of 32-bit words (see `buddy_allocator.py`): a free one, or a posting, the numbers of records that
# agree on a slice's columns.
PIECE: Final = 4  # words in a block of class 0
LENGTH: Final = 0  # of a posting; there are two records at least
SHAPE: Final = 1  # the size class, plus FREE, plus DISORDER if a posting is perhaps not ascending
RECORDS: Final = 2  # from here
SMALLEST: Final = 1  # class of a new posting: six records go into its block
NEXT: Final = 0  # of a free block: the next of its class + 1
PREVIOUS: Final = 2
CLASS: Final = 31
FREE: Final = 32
DISORDER: Final = 64

CHUNK: Final = 64  # rows whose cache lines are asked for together
LISTED: Final = 4 * CHUNK  # where in the scratch records that are to be linked are listed
# Linking a chunk takes so many words of an arena at most: a posting moves to a block of twice its size, and as many may
# lie between the top and where that can begin.
ARENA_ROOM: Final = 4  # for each record of the pool,
ARENA_LEAST: Final = 64 * CHUNK  # and besides
MOST_PASSED: Final = 4096  # from there on an index is no longer by runs
MOST_SEARCHED: Final = 4096  # and as many places as there are records: from there on a slice has back references
