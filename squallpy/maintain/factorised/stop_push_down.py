"""Stop of the push-down: where relations keep their rows, because payloads by key would be larger (§4.6).

dim(k, u, v), 1,000 rows, 1,000 keys   →   rows k, u, v, 4 words each, not 15
"""

from dataclasses import replace

from squallpy.maintain.factorised.cost import COMPENSATED, cost_of_payloads, cost_of_rows, count_groups
from squallpy.maintain.factorised.join_graph import JoinGraph
from squallpy.maintain.factorised.view_tree import View


def stop_push_down(view: View, graph: JoinGraph, sum_words: int = COMPENSATED, *, is_root: bool = True) -> View:
    """Let views of one relation keep its rows where that takes fewer words; nothing changes where sizes are unknown.

    The root keeps payloads, which are the result.
    """
    below = (stop_push_down(c, graph, sum_words, is_root=False) if isinstance(c, View) else c for c in view.children)
    stops = not is_root and _is_smaller_as_rows(view, graph, sum_words)
    return replace(view, children=tuple(below), keeps_rows=stops)


def _is_smaller_as_rows(view: View, graph: JoinGraph, sum_words: int) -> bool:
    if not (view.is_materialised and view.leaf and view.leaf.rows is not None):
        return False
    groups = count_groups(graph, view.leaf, view.keys)
    return groups is not None and cost_of_rows(view, view.leaf.rows) < cost_of_payloads(view, groups, sum_words)
