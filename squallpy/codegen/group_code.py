"""The printed function of a feed's delta, and what it is given."""

from typing import Final

from squallpy.base.records import dataclass
from squallpy.base.types import Type
from squallpy.codegen.text_expressions import ROOM

# Words that a function is given, by the address of the first.
STEPS: Final = 0  # the table of addresses by which it calls what is long (`kernels/trigger_steps.py`)
BATCH: Final = 1  # `ArrowArray` of the batch
FIRST: Final = 2  # its first row that counts, and how many do
ROWS: Final = 3
DICTIONARY: Final = 4  # frames
SUMS: Final = 5
COLUMNS: Final = 6  # from here: the place of each column in the batch, −1: it is not there; then room for short texts
SHORT_TEXTS: Final = 3 * 64  # words of that room, for each key that is a text
MARKS_WORDS: Final = 2  # behind them and recent records, if it has marks: the address of bits, and a shift


@dataclass(frozen=True, slots=True)
class GroupCode:
    """A printed function that computes a delta.

    Args:
        columns: Names and types of the columns that it reads.
        texts: Number of keys that are texts.
        constants: Texts that it has.
        room: Words in which it lifts doubles; 0 if it lifts none.
        has_marks: It is given the address of bits for its keys (`key_marks`), and a shift, at `marks_at`: unless the
            address is 0, it adds nothing up, but estimates how many keys are distinct.
        recent: How many records it remembers, by their keys.
        has_composed: It composes texts, in room at the end of what it is given.
    """

    delta: str
    function: str
    text: str
    columns: tuple[tuple[str, Type], ...]
    texts: int
    constants: tuple[str, ...]
    room: int = 0
    has_marks: bool = False
    recent: int = 0
    has_composed: bool = False

    @property
    def words(self) -> int:
        """Number of words that it is given."""
        composed = ROOM // 8 if self.has_composed else 0
        return self.marks_at + (MARKS_WORDS if self.has_marks else 0) + composed

    @property
    def marks_at(self) -> int:
        """The word at which it is given what it marks keys with."""
        return self.recent_at + self.recent

    @property
    def recent_at(self) -> int:
        """The word at which the records begin that it remembers."""
        return COLUMNS + len(self.columns) + self.texts * SHORT_TEXTS
