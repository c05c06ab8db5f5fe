"""Dictionaries against Python's, and hashes of contents."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.runtime.kernels.content_hash import hash_columns, hash_strings
from squallpy.runtime.kernels.dictionary import Dictionary

TEXT = st.text(max_size=20) | st.text("ab", max_size=3) | st.none()
KINDS = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))


def forms(values: list[str | None], draw: Callable[..., Any]) -> Any:
    """An Arrow array of `values`: any type, cut out of a longer one."""
    kind = draw(st.sampled_from(KINDS))
    around = draw(st.lists(TEXT, max_size=9))
    array = pa.array([*around, *values, *around], pa.string())
    array = array.dictionary_encode() if pa.types.is_dictionary(kind) else array.cast(kind)
    return array[len(around) : len(around) + len(values)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(TEXT, max_size=30), max_size=5), st.data())
def property_dictionary_equals_pythons(batches: list[list[str | None]], data: st.DataObject) -> None:
    ours, theirs = Dictionary(), {}
    for batch in batches:
        ids = ours.intern(forms(batch, data.draw))
        assert len(ids) == len(batch)
        for text, number in zip(batch, ids.tolist(), strict=True):
            assert number == (-1 if text is None else theirs.setdefault(text, number))
        assert len(set(theirs.values())) == len(theirs) <= len(ours)
        assert ours.strings(ids).to_pylist() == batch
    probe = [text for batch in batches for text in batch] + ["never seen before"]
    found = ours.lookup(forms(probe, data.draw)).tolist()
    assert found == [-1 if text is None else theirs.get(text, -1) for text in probe]


def oracle_numbers_by_first_appearance() -> None:
    ours = Dictionary()
    assert ours.intern(pa.array(["b", "", None, "b", "a"])).tolist() == [0, 1, -1, 0, 2]
    assert ours.intern(pa.chunked_array([["a"], ["c", None]])).tolist() == [2, 3, -1]
    assert ours.nbytes(np.array([3, -1, 1])) == 1
    assert ours.strings(np.array([3, -1, 1])).to_pylist() == ["c", None, ""]
    assert ours.strings(np.array([], np.int64)).to_pylist() == []


def property_dictionary_grows() -> None:
    texts = [f"{'x' * (n % 40)}{n}" for n in range(100_000)]
    ours = Dictionary()
    ids = ours.intern(pa.array(texts))
    assert ids.tolist() == list(range(len(texts)))
    assert ours.lookup(pa.array(texts[::-1])).tolist() == list(range(len(texts)))[::-1]
    assert ours.strings(ids).to_pylist() == texts
    assert len(np.unique(hash_strings(pa.array(texts)))) == len(texts)


def oracle_what_is_needed_stays() -> None:
    ours = Dictionary()
    ours.intern(pa.array(["a", "b", "", "c", "d"]))
    assert ours.keep(np.array([True] * 5)) is None and ours.edition == 0
    numbers = ours.keep(np.array([False, True, False, False, True]))
    assert numbers is not None and numbers[[1, 4]].tolist() == [0, 1] and len(ours) == 2 and ours.edition == 1
    assert ours.strings(np.array([1, 0])).to_pylist() == ["d", "b"]
    assert ours.lookup(pa.array(["a", "", "d", None])).tolist() == [-1, -1, 1, -1]
    assert ours.intern(pa.array(["", "b", "a"])).tolist() == [2, 0, 3]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9_000), st.integers(1, 5)), max_size=5))
def property_kept_strings_are_those_of_a_new_dictionary(turns: list[tuple[int, int]]) -> None:
    """However often, and whether or not the index was growing."""
    ours, start = Dictionary(), 0
    for count, share in turns:
        ours.intern(pa.array([f"text {n}" for n in range(start, start + count)]))
        start += count
        needed = np.arange(len(ours)) % (share + 1) == 0
        texts = ours.strings(np.flatnonzero(needed)).to_pylist()
        ours.keep(needed)
        assert ours.strings(np.arange(len(texts))).to_pylist() == texts and len(ours) == len(texts)
        assert ours.lookup(pa.array(texts)).tolist() == list(range(len(texts))) and not ours.is_due


@given(st.lists(st.tuples(TEXT, st.integers(-(2**63), 2**63 - 1)), min_size=1), st.data())
def property_hash_is_of_contents_only(rows: list[tuple[str | None, int]], data: st.DataObject) -> None:
    texts, numbers = [text for text, _ in rows], np.array([number for _, number in rows])
    whole = hash_columns([forms(texts, data.draw), numbers])
    one_by_one = [hash_columns([forms([text], data.draw), np.array([number])])[0] for text, number in rows]
    assert whole.tolist() == one_by_one


def oracle_hash_is_the_same_everywhere() -> None:
    """In another process, and in every version: partitions of old checkpoints depend on it."""
    code = (
        "import numpy as np, pyarrow as pa;"
        "from squallpy.runtime.kernels.content_hash import hash_columns as h;"
        "print(h([np.array([0, -1, 2**62]), pa.array(['', 'Grüße', None])]).tolist())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    here = hash_columns([np.array([0, -1, 2**62]), pa.array(["", "Grüße", None])]).tolist()
    assert told.strip() == str(here)
    assert here == [-7733471186341496030, -5346996237368675075, -7487914204872493054]


def property_hash_spreads() -> None:
    """Sequential keys fill partitions evenly, for every partition count."""
    hashes = hash_columns([np.arange(100_000)]).view(np.uint64)
    for partitions in (2, 3, 8, 64):
        filled = np.bincount((hashes % np.uint64(partitions)).astype(np.int64))
        assert filled.min() > 0.85 * 100_000 / partitions
