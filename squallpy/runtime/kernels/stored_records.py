"""The contents of a pool's records: keys and payloads, narrow as long as they fit, as arrays of 64 bits.

records = StoredRecords(area, 2, payload, 1)
records.keys, records.words_of(slots)       →   rows of int64, whatever they take in memory
records.widen_keys()                        →   words of 64 bits from now on
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from squallpy.base.keys import NULL
from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels import pool_layout
from squallpy.runtime.kernels.memory_area import Area
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.narrow_words import LEAST
from squallpy.runtime.kernels.stored_keys import NARROW, WIDE
from squallpy.runtime.kernels.stored_payloads import NARROW_WORD

_Held = npt.NDArray[Any]
_PIECE = 1 << 12  # rows that are widened at a time


class StoredRecords:
    """The keys and payloads of the records in an area.

    Args:
        keys_region: The number of the region that keys are in; payloads are in the next.
    """

    def __init__(self, area: Area, key_width: int, payload: Payload, keys_region: int) -> None:
        self._area, self._key_width, self._payload = area, key_width, payload
        self._keys_region, self._words_region = keys_region, keys_region + 1

    def __len__(self) -> int:
        return self._area.head[pool_layout.COUNT]

    @property
    def keys(self) -> Words:
        """Keys by slot, a view, or a copy where they are narrow."""
        return _keys_in_words(self._held_keys)

    @property
    def words(self) -> Words:
        """Payloads by slot, a view, or a copy where they are narrow."""
        return self._payloads_in_words(self._held_payloads)

    def keys_of(self, slots: Words) -> Words:
        """Copy the keys of records."""
        return _keys_in_words(self._held_keys.take(slots, axis=0))

    def words_of(self, slots: Words) -> Words:
        """Copy the payloads of records."""
        return self._payloads_in_words(self._held_payloads.take(slots, axis=0))

    def keys_between(self, start: int, stop: int) -> Words:
        """Return the keys of some slots, a view, or a copy where they are narrow."""
        return _keys_in_words(self._held_keys[start:stop])

    def words_between(self, start: int, stop: int) -> Words:
        """Return the payloads of some slots, a view, or a copy where they are narrow."""
        return self._payloads_in_words(self._held_payloads[start:stop])

    @property
    def unit(self) -> int:
        """Bytes of a word of a record's key."""
        return WIDE if self._area.head[pool_layout.WIDENED] else NARROW

    @property
    def payload_unit(self) -> int:
        """Bytes that stand for a word of a record's payload."""
        return WIDE if self._area.head[pool_layout.BROADENED] else NARROW_WORD

    def note_width(self) -> None:
        """Let kernels find in the frame how wide keys and payloads are."""
        frame = self._area.frame
        frame[pool_layout.UNIT], frame[pool_layout.STRIDE] = self.unit, self.unit * self._key_width
        frame[pool_layout.BROAD] = self.payload_unit * self._payload.width

    def key_words(self, count: int) -> int:
        """Return how many words of 64 bits the keys of so many records take."""
        return -(-count * self._key_width * self.unit // WIDE)

    def payload_words(self, count: int) -> int:
        """Return how many words of 64 bits the payloads of so many records take."""
        return -(-count * self._payload.width * self.payload_unit // WIDE)

    def widen_keys(self) -> None:
        """Let keys have words of 64 bits from now on."""
        self._widen(self._keys_region, self._key_width, pool_layout.WIDENED, self.keys_between)

    def widen_payloads(self) -> None:
        """Let payloads have words of 64 bits from now on, if they have not."""
        if self.payload_unit != WIDE:
            self._widen(self._words_region, self._payload.width, pool_layout.BROADENED, self.words_between)

    def _widen(self, region: int, width: int, noted: int, between: Any) -> None:
        """Give each row of a region twice the bytes, and note it in the head."""
        count, area = len(self), self._area
        area.grow(region, max(count * width, area.words(region)))
        for start in range(count // _PIECE * _PIECE, -1, -_PIECE):  # from the end, as a word is where two were
            stop = min(count, start + _PIECE)
            area.array(region)[start * width : stop * width] = between(start, stop).reshape(-1)
        area.head[noted] = 1
        area.grow(region, area.words(region))  # NB: which others see, who then look again
        self.note_width()

    @property
    def _held_keys(self) -> _Held:
        """Keys by slot as they are held, a view."""
        return self._held(self._keys_region, self._key_width, self.unit)

    @property
    def _held_payloads(self) -> _Held:
        """Payloads by slot as they are held, a view."""
        return self._held(self._words_region, self._payload.width, self.payload_unit)

    def _held(self, region: int, width: int, unit: int) -> _Held:
        self._area.current()
        words = self._area.array(region)
        held: _Held = words if unit == WIDE else words.view(np.int32)
        return held[: len(self) * width].reshape(len(self), width)

    def _payloads_in_words(self, held: _Held) -> Words:
        if held.dtype == np.int64:
            return held
        words: Words = held.astype(np.int64)
        for ring, start in zip(self._payload.rings, self._payload.offsets, strict=True):
            if ring is Ring.EXACT:
                words[:, start] = np.ascontiguousarray(held[:, start : start + 2]).view(np.int64)[:, 0]
                words[:, start + 1] = words[:, start] >> 63
        return words


def _keys_in_words(held: _Held) -> Words:
    if held.dtype == np.int64:
        return held
    words: Words = held.astype(np.int64)
    words[words == LEAST] = NULL
    return words
