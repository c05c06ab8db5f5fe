"""Functions that printed code calls by their address, so that it is compiled without them."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

from numba.core.ccallback import CFunc
from numba.core.runtime.nrt import rtsys
from numba.core.sigutils import normalize_signature

from squallpy.runtime.kernels.kernel_compiler import keep_machine_code, source_stamp

_compiler: Any = CFunc
_signature: Any = normalize_signature
_LOADING = RLock()


class CFunction:
    """A function of words, compiled when its address is first asked for, or taken from the disk cache."""

    def __init__(self, function: Callable[..., int], words: int) -> None:
        self._function, self._words = function, words
        self.name = f"{function.__module__}.{function.__name__}"

    @property
    def is_loaded(self) -> bool:
        """True if this process has it compiled."""
        return "address" in vars(self)

    @property
    def is_cached(self) -> bool:
        """True if the disk cache has it."""
        return bool(self._open()._cache._cache_file._load_index())

    def load(self) -> None:
        """Take it from the disk cache, or compile it and put it there; nothing if that is done."""
        assert self.address

    def _open(self) -> Any:
        """Open the disk cache of it, which a change of any source that it imports makes stale."""
        made = _compiler(self._function, _signature(f"int64({', '.join(['int64'] * self._words)})"), {}, {})
        made.enable_caching()
        keep_machine_code(made._cache)
        made._cache._cache_file._source_stamp = source_stamp(Path(self._function.__code__.co_filename))
        return made

    @cached_property
    def address(self) -> int:
        """Address of its machine code."""
        with _LOADING:
            made = self._open()
            cache = made._cache

            def load_cached(signature: Any, target: Any) -> Any:
                rtsys.initialize(target)
                return cache._load_overload(signature, target)

            cache.load_overload = load_cached  # NB: as of kernels; numba's own imports all that it can compile (0.2 s)
            made.compile()
            self._made = made  # NB: it owns the code
            return int(made.address)


C_FUNCTIONS: list[CFunction] = []
"""Functions of all modules that are imported."""


def c_function(words: int) -> Callable[[Callable[..., int]], CFunction]:
    """Make a function of so many words one that is called by its address."""

    def made(function: Callable[..., int]) -> CFunction:
        C_FUNCTIONS.append(own := CFunction(function, words))
        return own

    return made
