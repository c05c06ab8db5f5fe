"""Changes of one node's table: words that come are found, then entered; those that go are found, then taken out.

    find_free      words, lines   →   where each that is new may be entered
    find_single    words, lines   →   where each is that is a group's only derivation

A place is sought while nothing is stored there: a line with a word on its way into it could not be compared before the
word is in the cache.
"""

from typing import Final

from squallpy.runtime.kernels.grouped_blocks import valid_places
from squallpy.runtime.kernels.grouped_entries import CHOSEN, COUNT, ONLY, TAG
from squallpy.runtime.kernels.intrinsics import load, lowest, prefetch, store
from squallpy.runtime.kernels.kernel_compiler import inlined
from squallpy.runtime.kernels.line_addresses import KEY
from squallpy.runtime.kernels.line_comparison import equal64

SINGLE: Final = 1 << COUNT | CHOSEN | ONLY
"""Flags and number of an entry that is the only one of its group, and has one derivation."""
_FIRST: Final = 1 << COUNT | ONLY
_ENTRY: Final = (1 << 16) - 1 << TAG | KEY
_LINE: Final = ~15


@inlined
def find_free(words: int, lines: int, count: int, full: int, ahead: int) -> None:
    """Put in place of each word's line a free place of it, or the address `full` if there is none, or it has the group.

    Which of a line's free places it is depends on the word, so that different ones seldom get the same, but equal ones
    do.

    Args:
        ahead: Lines to ask for meanwhile, one for each word.
    """
    for i in range(count):
        prefetch(load(ahead, i))
        word, line = load(words, i), load(lines, i)
        at, valid, turn = line & _LINE, valid_places(line), word & 7
        same, vacant = equal64(at, word & KEY, KEY) & valid, equal64(at, 0, KEY) & valid
        place = at + 8 * (lowest((vacant | vacant << 8) >> turn) + turn & 7)
        store(lines, i, place if same == 0 and vacant != 0 else full)


@inlined
def free_place_again(word: int, line: int) -> int:
    """Find a place like `find_free`, for a word whose place another one has taken; 0 if there is none."""
    at, valid = line & _LINE, valid_places(line)
    same, vacant = equal64(at, word & KEY, KEY) & valid, equal64(at, 0, KEY) & valid
    return at + 8 * lowest(vacant) if same == 0 and vacant != 0 else 0


@inlined
def find_single(words: int, lines: int, count: int, is_small: bool, ahead: int) -> None:
    """Put in place of each word's line its place there if it has one derivation and is its group's only one, else 0.

    That is in lines with free places, from which a word may be taken.
    """
    for i in range(count):
        prefetch(load(ahead, i))
        word, line = load(words, i), load(lines, i)
        at = line & _LINE
        same, spare = equal64(at, word | SINGLE, -1) & valid_places(line), equal64(at, 0, KEY)
        store(lines, i, at + 8 * lowest(same) if same != 0 and (spare != 0 or is_small) else 0)


@inlined
def place_in_line(word: int, line: int) -> int:
    """Find the entry of a word in its line; 0 if it is not there."""
    at = line & _LINE
    same = equal64(at, word, _ENTRY) & valid_places(line)
    return at + 8 * lowest(same) if same != 0 else 0


@inlined
def enter_words(words: int, places: int, count: int, table: int, spots: int) -> tuple[int, int]:
    """Enter words where places have been found, one derivation of each, and list the spots.

    Returns how many find their place taken by another one, which then come first, and the largest word.
    """
    taken, largest = 0, 0
    for i in range(count):
        word, place = load(words, i), load(places, i)
        largest = max(largest, word)
        if load(place, 0) != 0:
            store(words, taken, word)
            taken += 1
        else:
            store(place, 0, word | _FIRST)
            store(spots, i - taken, (place - table) >> 2 | 1)
    return taken, largest


@inlined
def enter_rows(words: int, places: int, count: int, shift: int, items: int) -> tuple[int, int]:
    """Enter words like `enter_words`, of rows that come for certain, and list their items.

    Args:
        shift: What a word has more than its item.
    """
    taken, largest = 0, 0
    for i in range(count):
        word, place = load(words, i), load(places, i)
        largest = max(largest, word)
        if load(place, 0) != 0:
            store(words, taken, word)
            taken += 1
        else:
            store(place, 0, word | SINGLE)
            store(items, i - taken, word - shift)
    return taken, largest


@inlined
def take_out(words: int, places: int, count: int, shift: int, items: int) -> int:
    """Take words out of their places, and list their items; those without a place then come first.

    Returns how many these are.
    """
    left = 0
    for i in range(count):
        word, place = load(words, i), load(places, i)
        if place == 0:
            store(words, left, word)
            left += 1
        else:
            store(place, 0, 0)
            store(items, i - left, word - shift)
    return left
