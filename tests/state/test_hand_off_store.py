"""Hand-offs from partition to partition: each its own, until the batch after theirs is done."""

from pathlib import Path
from typing import Any

import pytest

from squallpy.base.errors import SquallError
from squallpy.runtime.joiners.hand_off_store import HandOffStore


@pytest.mark.parametrize("place", ["{}", "file://{}"])
def test_each_gets_its_hand_offs(place: Any, tmp_path: Path) -> None:
    store = HandOffStore(place.format(tmp_path))
    store.write(17, 3, [(1, b"a"), (2, b""), (0, b"ccc")])
    store.write(17, 1, [])
    assert store.read(17, 0, [1, 3]) == [b"ccc"]
    assert [store.read(17, receiver, [3]) for receiver in (1, 2, 4)] == [[b"a"], [b""], []]
    store.write(17, 3, [(1, b"a"), (2, b""), (0, b"ccc")])  # asked again
    store.write(18, 3, [(1, b"d")])
    assert HandOffStore(place.format(tmp_path)).read(18, 1, [3]) == [b"d"] and store.read(17, 1, [3]) == [b"a"]


def test_hand_offs_are_kept_until_the_batch_after_theirs_is_done(tmp_path: Path) -> None:
    store = HandOffStore(str(tmp_path))
    for batch in (16, 17, 18):
        store.write(batch, 0, [(1, b"a")])
    store.drop(18)
    assert sorted(path.name for path in (tmp_path / "hand-offs").iterdir()) == ["17", "18"]
    assert store.read(17, 1, [0]) == [b"a"]


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + b"b", lambda data: b"", None])
def fault_a_damaged_hand_off_is_told(damage: Any, tmp_path: Path) -> None:
    store, path = HandOffStore(str(tmp_path)), tmp_path / "hand-offs" / "17" / "0"
    store.write(17, 0, [(1, b"a")])
    if damage:
        path.write_bytes(damage(path.read_bytes()))
    else:
        path.unlink()
    with pytest.raises(SquallError, match=r"SQ6005 .*hand-offs/17/0 damaged"):
        store.read(17, 1, [0])
