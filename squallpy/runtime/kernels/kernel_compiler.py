"""Compilation of kernels: entry points for one signature, at their first call, into which the functions they call are
inlined.

numba's cache notices a change of a kernel's own file only. Kernels inline from other files, so here a change of any
that it imports is noticed; by content and not by date, so that a copy of the package on another host is ready, too.

numba keeps the bitcode of what it compiles beside the machine code, to inline it elsewhere: five sixths of what is then
read and parsed when it is loaded. Nothing inlines an entry point, so here only its symbols are kept.
"""

import re
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, Protocol, TypeVar, cast

from llvmlite import binding
from numba import njit, types
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic

_compiler: Any = njit  # NB: its types do not know all of its options
_intrinsic: Any = intrinsic
_PART: Any = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_Function = TypeVar("_Function", bound=Callable[..., Any])

VECTOR, MATRIX = "int64[::1]", "int64[:, ::1]"
GIVEN_VECTOR = "Array(int64, 1, 'C', readonly=True)"  # given: never written, hence perhaps read-only as Arrow memory is
GIVEN_MATRIX = "Array(int64, 2, 'C', readonly=True)"


_ROOT = Path(__file__).parents[3]
_IMPORT = re.compile(r"^from (squallpy[.\w]*) import (\([^)]*\)|.*)", re.MULTILINE)


class Vector(Protocol):
    """Words as kernels see them: what a numpy array gives out as scalars are plain integers there."""

    @property
    def ctypes(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, at: Any, /) -> int: ...
    def __setitem__(self, at: Any, value: Any, /) -> None: ...


@cache
def source_stamp(file: Path, root: Path = _ROOT) -> bytes:
    """Hash a file and all of squallpy, a folder of `root`, that it imports, also through others."""
    files = [file]
    for source in files:
        files += _imported(source, root).difference(files)
    return sha256(b"".join(sorted(map(_content_hash, files)))).digest()


@cache
def _content_hash(file: Path) -> bytes:
    return sha256(file.read_bytes()).digest()


@cache
def _imported(file: Path, root: Path) -> frozenset[Path]:
    """List the files of squallpy that one imports, themselves or a name in them."""
    paths = list[Path]()
    for module, names in _IMPORT.findall(file.read_text(encoding="utf-8")):
        folder = root.joinpath(*module.split("."))
        paths += (folder / "__init__", folder, *(folder / name for name in re.findall(r"\w+", names)))
    return frozenset(path for each in paths if (path := each.with_suffix(".py")).is_file())


_LOADING = RLock()
_SYMBOL = """define void @"{}"() {{
  call void @llvm.trap()
  unreachable
}}
"""


def keep_machine_code(cache: Any) -> None:
    """Let a disk cache of numba keep the machine code of entry points, and instead of their bitcode the symbols."""
    cache._impl.reduce = _reduce


def _reduce(compiled: Any) -> tuple[Any, ...]:
    """Take a compiled function apart into what the disk cache keeps of it.

    NB: numba finds no symbol of machine code that the bitcode beside it does not define, so these are defined as traps.
    """
    (name, kind, (machine_code, _)), *others = compiled._reduce()
    assert kind == "object"
    entries = compiled.fndesc
    names = (entries.llvm_func_name, entries.llvm_cpython_wrapper_name, entries.llvm_cfunc_wrapper_name)
    symbols = [_SYMBOL.format(each) for each in names if compiled.library.get_pointer_to_function(each)]
    bitcode = binding.parse_assembly("declare void @llvm.trap()\n" + "".join(symbols)).as_bitcode()
    return (name, kind, (machine_code, bitcode)), *others


class NotCached(Exception):
    """A kernel that the disk cache does not have for this processor, these sources and numba's version."""


class Kernel:
    """An entry point that is not compiled yet.

    Args:
        dispatcher: numba's, which is called; its first call comes here.
        signature: The only one that it is compiled for.
    """

    def __init__(self, dispatcher: Any, signature: str) -> None:
        self.name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__name__}"
        self._dispatcher, self._signature = dispatcher, signature
        dispatcher._compile_for_args = self._first_call
        dispatcher.get_call_template = self._refuse_call

    def load(self, only_cached: bool = False) -> None:
        """Take it from the disk cache, or compile it and put it there; nothing if that is done.

        Args:
            only_cached: Raise NotCached where it would be compiled.
        """
        with _LOADING:
            if not self.is_loaded:
                self._index()
                self._dispatcher._cache.load_overload = self._demand if only_cached else self._cached
                self._dispatcher.compile(self._signature)
                self._dispatcher.disable_compile()
                del self._dispatcher._compile_for_args

    @property
    def function(self) -> Any:
        """The function that is called."""
        return self._dispatcher

    @property
    def is_loaded(self) -> bool:
        """True if this process has it compiled."""
        return "_compile_for_args" not in vars(self._dispatcher)

    @property
    def is_cached(self) -> bool:
        """True if the disk cache has it."""
        return bool(self._index()._load_index())

    def _index(self) -> Any:
        """Open the disk cache's index of its versions, which a change of any kernel's source makes stale."""
        self._dispatcher.enable_caching()
        keep_machine_code(self._dispatcher._cache)
        index = self._dispatcher._cache._cache_file
        index._source_stamp = source_stamp(Path(self._dispatcher.py_func.__code__.co_filename))
        return index

    def _cached(self, signature: Any, target: Any) -> Any:
        """Take the code from the disk cache; None if it is not there.

        NB: numba's own first imports all that it can compile (0.2 s), which what is compiled does not need.
        """
        rtsys.initialize(target)
        return self._dispatcher._cache._load_overload(signature, target)

    def _demand(self, signature: Any, target: Any) -> Any:
        """Take the code from the disk cache; raises NotCached."""
        if (found := self._cached(signature, target)) is None:
            raise NotCached(self.name)
        return found

    def _refuse_call(self, *_: Any) -> Any:
        """Refuse to be called by compiled code, for which the disk cache has no bitcode."""
        raise TypeError(f"{self.name} is an entry point: compiled code takes its py_func")

    def _first_call(self, *_: Any) -> Any:
        """Answer the dispatcher, which has no code for the types of its arguments: with what it is to call."""
        self.load()
        (compiled,) = self._dispatcher.overloads.values()
        return compiled.entry_point


KERNELS: list[Kernel] = []
"""Kernels of all modules that are imported."""


def kernel(signature: str) -> Callable[[_Function], _Function]:
    """Make a function an entry point, compiled for this signature when it is first called; runs without the GIL."""

    def made(function: _Function) -> _Function:
        dispatcher = _compiler(function, nogil=True, no_cfunc_wrapper=True)
        KERNELS.append(Kernel(dispatcher, signature))
        return cast(_Function, dispatcher)

    return made


def inlined(function: _Function) -> _Function:
    """Make a function a part of kernels, always inlined: left to choose, LLVM may call it, which costs 10 ns with an
    array.

    Python and C cannot call it: without wrappers for them, each with a copy of it, kernels compile in 5/6 of the time.
    It makes no arrays, and counts no references to those that it is given, which took a third of the time of some.
    """
    return cast(_Function, _compiler(function, **_PART, _nrt=False))


def called(function: _Function) -> _Function:
    """Make a function a part of kernels that is called, for what is long and takes longer than a call."""
    return cast(_Function, _compiler(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False))


def making(function: _Function) -> _Function:
    """Make a function a part of kernels like `inlined` that makes arrays."""
    return cast(_Function, _compiler(function, **_PART))


def _address(_: Any, array: Any) -> Any:
    """Return where an array's memory starts.

    NB: `array.ctypes.data` counts a reference to the array and takes it back: 10 ns at each use.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, values[0])
        return builder.ptrtoint(held.data, context.get_value_type(signature.return_type))

    return types.int64(array), generate


address: Callable[[Vector], int] = _intrinsic(_address)
