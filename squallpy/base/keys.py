"""Keys of views: the words that stand for values, of which some are reserved.

A NULL key is `NULL`, a text's is its number in a dictionary, −1 for NULL. Keys of doubles are bit patterns (0.0 for
−0.0, one NaN). A DECIMAL of more than 18 digits whose value is below `LEAST`, or has no room in 64 bits, has a key from
`NULL` + 1 on, by the number of its digits in the dictionary. Other values are their own keys.

Integers are ordered and there are 2⁶⁴ of them, so one has no key: `HOLE`, which is far from where numbers are. Those
below it have the key behind them, which keeps the order, and −2⁶³ apart from NULL.
"""

from squallpy.base.types import Kind, Type

NULL = -(2**63)
LEAST = NULL + 2**32  # dictionaries number fewer than 2³¹ texts
HOLE = NULL + 0x9E3779B9


def null_of(type: Type) -> int:
    """Return the key that stands for NULL."""
    return -1 if type.kind is Kind.VARCHAR else NULL


def least_in_order(type: Type) -> int:
    """Return the least key that is ordered by its value: below are NULL and the keys that number texts."""
    return LEAST if type.is_wide else NULL + 1


def least_as_held(type: Type) -> int:
    """Return the least value that is its own key."""
    return HOLE + 1 if type.is_integer else LEAST if type.is_wide else NULL + 1


def is_plain(type: Type) -> bool:
    """True if the keys of the type are its values as integers, in their order."""
    return type.kind is Kind.BOOLEAN or (type.is_held_in_order and type.kind is not Kind.DOUBLE)


def is_own_key(value: int, type: Type) -> bool:
    """True if a value of the type is its own key."""
    return is_plain(type) and value >= least_as_held(type)
