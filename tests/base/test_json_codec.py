"""Values as JSON and back, whose classes say what they are; also by way of aliases."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from squallpy.base.json_codec import decode, from_json, to_json
from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    first: int
    second: str | None


@dataclass(frozen=True, slots=True)
class Single:
    only: tuple[Pair | None, ...]


@pytest.mark.parametrize("value", [Pair(1, None), Pair(2**63, "é"), Single(()), Single((Pair(1, "x"), None))], ids=repr)
def test_there_and_back(value: Any) -> None:
    assert from_json(type(value), json.loads(json.dumps(to_json(value)))) == value


@pytest.mark.parametrize("kind", [np.uint64, np.int64, np.float64])
def test_arrays(kind: Any) -> None:
    """NDArray is a class with parameters, or from numpy 2.5 on an alias of one."""
    found = decode(npt.NDArray[kind], [1, 2**40])
    assert isinstance(found, np.ndarray) and found.dtype == kind and found.tolist() == [1, 2**40]


class Alias:
    """What `type name[T] = value` makes in Python 3.12."""

    def __init__(self, value: Any) -> None:
        self.__value__ = value


def test_aliases() -> None:
    """Of aliases, too."""
    assert decode(Alias(Alias(tuple[int, ...])), [1, 2]) == (1, 2)


def fault_a_class_without_a_form() -> None:
    with pytest.raises(AssertionError):
        decode(set[int], [1])
