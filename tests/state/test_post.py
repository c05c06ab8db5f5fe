"""Letters from partition to partition: each its own, until the batch after theirs is done."""

from collections.abc import Callable
from pathlib import Path

import pytest

from squallpy.base.errors import SquallError
from squallpy.runtime.joiners.hand_off import Post


@pytest.mark.parametrize("place", ["{}", "file://{}"])
def test_each_gets_its_letters(place: str, tmp_path: Path) -> None:
    post = Post(place.format(tmp_path))
    post.leave(17, 3, [(1, b"a"), (2, b""), (0, b"ccc")])
    post.leave(17, 1, [])
    assert post.fetch(17, 0, [1, 3]) == [b"ccc"]
    assert [post.fetch(17, receiver, [3]) for receiver in (1, 2, 4)] == [[b"a"], [b""], []]
    post.leave(17, 3, [(1, b"a"), (2, b""), (0, b"ccc")])  # asked again
    post.leave(18, 3, [(1, b"d")])
    assert Post(place.format(tmp_path)).fetch(18, 1, [3]) == [b"d"] and post.fetch(17, 1, [3]) == [b"a"]


def test_letters_are_kept_until_the_batch_after_theirs_is_done(tmp_path: Path) -> None:
    post = Post(str(tmp_path))
    for batch in (16, 17, 18):
        post.leave(batch, 0, [(1, b"a")])
    post.drop(18)
    assert sorted(path.name for path in (tmp_path / "post").iterdir()) == ["17", "18"]
    assert post.fetch(17, 1, [0]) == [b"a"]


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + b"b", lambda data: b"", None])
def fault_a_damaged_letter_is_told(damage: Callable[[bytes], bytes] | None, tmp_path: Path) -> None:
    post, path = Post(str(tmp_path)), tmp_path / "post" / "17" / "0"
    post.leave(17, 0, [(1, b"a")])
    if damage:
        path.write_bytes(damage(path.read_bytes()))
    else:
        path.unlink()
    with pytest.raises(SquallError, match=r"SQ6005 .*post/17/0 damaged"):
        post.fetch(17, 1, [0])
