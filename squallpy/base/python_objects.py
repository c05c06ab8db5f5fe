"""Objects of Python that a script names, as OPTIONS (class 'package.module.Class') does.

find_object("class", "mine.Numbers", ["/home/ann/q"], is_meant, span)    →   the class Numbers of /home/ann/q/mine.py
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from squallpy.base.errors import Span, SquallError, nearest


def search_path(base: Path) -> Sequence[str]:
    """List the folders in which modules are looked for, beside those of Python."""
    return [str(base.absolute()), str(Path.cwd())]


def find_object(
    option: str, name: str, folders: Sequence[str], is_meant: Callable[[Any], bool], span: Span | None
) -> Any:
    """Find what an option names in a module; SQ7002 if there is none, with one like it that may be meant.

    What the module raises while it is imported passes.
    """
    module, _, called = name.rpartition(".")
    if not module or not called:
        message = f"OPTIONS ({option} '{name}') names nothing in a module"
        raise SquallError("SQ7002", message, span, f"write {option} 'package.module.name'")
    look_in(folders)
    found = getattr(_imported(module, span), called, None)
    if found is None:
        raise SquallError("SQ7002", f'the module {module} has no "{called}"', span, suggest_object(name, is_meant))
    return found


def suggest_object(name: str, is_meant: Callable[[Any], bool]) -> str:
    """Suggest what else of a module may be meant."""
    module, _, called = name.rpartition(".")
    return nearest(called, [other for other, found in vars(sys.modules[module]).items() if is_meant(found)])


def look_in(folders: Sequence[str]) -> None:
    """Let modules in these folders be imported."""
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]


def _imported(module: str, span: Span | None) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            hint = "put it beside the script, or install its package"
            raise SquallError("SQ7002", f'there is no module "{module}"', span, hint) from None
        raise SquallError("SQ7002", f"the module {module} needs {error.name}", span, "install it") from None
