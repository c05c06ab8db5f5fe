"""Orders of rows: as many keys are looked up as may be, and only those behind them are packed."""

import pytest

from squallpy.base.types import INT
from squallpy.logical.expressions import Column
from squallpy.logical.total_order import shorten

COLUMNS = [Column(number, f"c{number}", INT, True) for number in range(9)]


@pytest.mark.parametrize(
    ("keys", "own", "kept"), [(9, 0, 5), (9, 2, 5), (9, 7, 7), (6, 0, 6), (7, 7, 7), (8, 0, 5), (9, 9, 9)]
)
def test_the_last_keys_are_packed(keys: int, own: int, kept: int) -> None:
    order = tuple((column, False, True) for column in COLUMNS[:keys])
    found = shorten(order, own, 6)
    assert found[:kept] == order[:kept] and len(found) == min(keys, kept + 1)
