"""Optional imports of other libraries that a query never uses."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import Any


class _Hide(MetaPathFinder):
    """Finder for which a module is not installed."""

    def __init__(self, module: str) -> None:
        self._module = module

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> None:
        if fullname == self._module:
            raise ModuleNotFoundError(f"{fullname} is hidden", name=fullname)


@contextmanager
def hide_module(module: str) -> Iterator[None]:
    """Hide a module from libraries that only look whether it is there; one that is imported already stays visible."""
    finder = _Hide(module)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
