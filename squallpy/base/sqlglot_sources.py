"""sqlglot from its Python sources, also where its compiled modules are installed: those allow no subclass.

pip install "sqlglot[c]"     puts parser.cpython-311-….so beside parser.py, and Python prefers it
import squallpy              from here on, parser.py it is
"""

import sys
from functools import cache
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


class _Sources:
    """Finds modules inside sqlglot by their sources; any other module is left to the finders after it.

    NB: no subclass of MetaPathFinder, whose module takes as long to import as all that the command's help needs.
    """

    def find_spec(
        self, fullname: str, path: "Sequence[str] | None", target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("sqlglot."):
            return None
        found = (_finder(folder).find_spec(fullname) for folder in path or ())
        return next((spec for spec in found if spec is not None and spec.loader is not None), None)


@cache
def _finder(folder: str) -> FileFinder:
    return FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))


def prefer_sources() -> None:
    """Let sqlglot be imported from its sources from now on, by whomever."""
    if not any(isinstance(finder, _Sources) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Sources())


def check_sources(parser: "ModuleType") -> None:
    """Raise SQ8009 if sqlglot's parser is a compiled one, which somebody imported before."""
    from squallpy.base.errors import SquallError

    if not str(parser.__file__).endswith(tuple(SOURCE_SUFFIXES)):
        message = "the parser of sqlglot[c] was imported before squallpy, and cannot be extended"
        raise SquallError("SQ8009", message, hint="import squallpy first, or: pip uninstall sqlglotc")
