"""How kernels are compiled: entry points once, ahead of the first row; what they call is inlined into them.

numba's cache notices a change of a kernel's own file. Kernels inline from each other's, so here it notices a change
of any of them; by what is in the files and not by when they were written, so that a copy of the package on another
host is ready, too.
"""

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from numba import njit, types
from numba.extending import intrinsic

_compiler: Any = njit  # NB: its types do not know all of its options
_intrinsic: Any = intrinsic
_PART: Any = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_Function = TypeVar("_Function", bound=Callable[..., Any])

VECTOR, MATRIX = "int64[::1]", "int64[:, ::1]"
GIVEN_VECTOR = "Array(int64, 1, 'C', readonly=True)"  # given: never written, hence perhaps read-only as Arrow memory is
GIVEN_MATRIX = "Array(int64, 2, 'C', readonly=True)"


class Vector(Protocol):
    """Words as kernels see them: what a numpy array gives out as scalars are plain integers there."""

    @property
    def ctypes(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, at: Any, /) -> int: ...
    def __setitem__(self, at: Any, value: Any, /) -> None: ...


@cache
def _stamp(file: Path) -> bytes:
    """What tells one state of a kernel's file, and of all the kernels' files, from another."""
    digest = sha256()
    for source in (*sorted(Path(__file__).parent.glob("*.py")), file):
        digest.update(source.read_bytes())
    return digest.digest()


def kernel(signature: str) -> Callable[[_Function], _Function]:
    """An entry point, compiled for this signature at import or taken from the disk cache; runs without the GIL."""

    def made(function: _Function) -> _Function:
        compiled = _compiler(function, nogil=True, no_cfunc_wrapper=True)
        compiled.enable_caching()
        index = compiled._cache._cache_file
        index._source_stamp = _stamp(Path(function.__code__.co_filename))
        compiled.compile(signature)
        compiled.disable_compile()
        return cast(_Function, compiled)

    return made


def inlined(function: _Function) -> _Function:
    """A part of kernels, always inlined: left to choose, LLVM may call it, and a call with an array costs 10 ns.

    Nobody else calls it: without wrappers for Python and C, each with a copy of it, kernels compile in 5/6 of the time.
    It makes no arrays, and counts no references to those that it is given, which took a third of the time of some.
    """
    return cast(_Function, _compiler(function, **_PART, _nrt=False))


def making(function: _Function) -> _Function:
    """A part of kernels like `inlined` that makes arrays."""
    return cast(_Function, _compiler(function, **_PART))


def _address(_: Any, array: Any) -> Any:
    """Where an array's memory starts. Not `array.ctypes.data`, which counts a reference to the array and takes it
    back: 10 ns at each use."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, values[0])
        return builder.ptrtoint(held.data, context.get_value_type(signature.return_type))

    return types.int64(array), generate


address: Callable[[Vector], int] = _intrinsic(_address)
