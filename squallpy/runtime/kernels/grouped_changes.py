"""Changes of one node's table: words that come are found, then entered; those that go are found, then taken out.

    find_free      words, lines   →   those that are new, with the place that each may take; the others
    find_single    words, lines   →   those that are a group's only derivation, with its place; the others

A place is sought while nothing is stored there: a line with a word on its way into it could not be compared before the
word is in the cache.
"""

from typing import Final

from squallpy.runtime.kernels.arena_tables import KEY
from squallpy.runtime.kernels.grouped_blocks import valid_places
from squallpy.runtime.kernels.grouped_entries import CHOSEN, COUNT, ONLY, TAG
from squallpy.runtime.kernels.intrinsics import load, lowest, prefetch, store
from squallpy.runtime.kernels.kernel_compiler import inlined
from squallpy.runtime.kernels.line_comparison import equal64

SINGLE: Final = 1 << COUNT | CHOSEN | ONLY
"""Flags and number of an entry that is the only one of its group, and has one derivation."""
_ENTRY: Final = (1 << 16) - 1 << TAG | KEY
_LINE: Final = ~15


@inlined
def find_free(words: int, lines: int, count: int, most: int, rest: int, ahead: int) -> int:
    """Find places for words whose group has none: word and place are stored where `words` and `lines` begin.

    Returns how many there are, `most` at most. Other words are put into `rest`, each with its line. Which of a
    line's free places it is depends on the word, so that different ones seldom get the same, but equal ones do.

    Args:
        ahead: Lines to ask for meanwhile, one for each word.
    """
    found = 0
    for i in range(count):
        prefetch(load(ahead, i))
        word, line = load(words, i), load(lines, i)
        at, valid, turn = line & _LINE, valid_places(line), word & 7
        same, vacant = equal64(at, word & KEY, KEY) & valid, equal64(at, 0, KEY) & valid
        store(words, found, word)
        store(lines, found, at + 8 * (lowest((vacant | vacant << 8) >> turn) + turn & 7))
        store(rest, 2 * (i - found), word)
        store(rest, 2 * (i - found) + 1, line)
        found += 1 if same == 0 and vacant != 0 and found < most else 0
    return found


@inlined
def free_place_again(word: int, line: int) -> int:
    """Find a place like `find_free`, for a word whose place another one has taken; 0 if there is none."""
    at, valid = line & _LINE, valid_places(line)
    same, vacant = equal64(at, word & KEY, KEY) & valid, equal64(at, 0, KEY) & valid
    return at + 8 * lowest(vacant) if same == 0 and vacant != 0 else 0


@inlined
def find_single(words: int, lines: int, count: int, is_small: bool, rest: int, ahead: int) -> int:
    """Find places of words that have one derivation and are the only ones of their group, in lines with free places.

    Returns and stores like `find_free`.
    """
    found = 0
    for i in range(count):
        prefetch(load(ahead, i))
        word, line = load(words, i), load(lines, i)
        at = line & _LINE
        same, spare = equal64(at, word | SINGLE, -1) & valid_places(line), equal64(at, 0, KEY)
        store(words, found, word)
        store(lines, found, at + 8 * (lowest(same) & 7))
        store(rest, 2 * (i - found), word)
        store(rest, 2 * (i - found) + 1, line)
        found += 1 if same != 0 and (spare != 0 or is_small) else 0
    return found


@inlined
def place_in_line(word: int, line: int) -> int:
    """Find the entry of a word in its line; 0 if it is not there."""
    at = line & _LINE
    same = equal64(at, word, _ENTRY) & valid_places(line)
    return at + 8 * lowest(same) if same != 0 else 0
