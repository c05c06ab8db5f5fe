"""Circles of imports: none but the recursions of expressions and queries, each inside one room."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

import grimp

RECURSIVE = {
    "squallpy.logical.bind": "a query has expressions, which have subqueries",
    "squallpy.runtime.evaluate": "an evaluator compiles its arguments, and casts of constants are evaluated",
    "squallpy.api": "a relation is materialized as a view, which is a relation",
}


def test_modules_import_each_other_in_no_circle() -> None:
    """An import inside a function counts, one for type checkers only does not."""
    graph = grimp.build_graph("squallpy", exclude_type_checking_imports=True, cache_dir=None)
    assert circle({"a": ["b"], "b": ["c"], "c": ["a"]})
    between = {
        module: [other for other in graph.find_modules_directly_imported_by(module) if not is_recursion(module, other)]
        for module in graph.modules - {"squallpy"}  # what the package exports is imported when asked for
    }
    assert not circle(between)


def is_recursion(module: str, other: str) -> bool:
    """True if both modules are in one room that is recursive."""
    return any(module.startswith(f"{room}.") and other.startswith(f"{room}.") for room in RECURSIVE)


def circle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """Find modules that import each other in a circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
