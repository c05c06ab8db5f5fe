"""Stop of the push-down: relations with one row a key keep rows, whose payloads would be larger.

dim(k, u, v), PRIMARY KEY (k)   →   rows k, u, v, 4 words each, not 15

Payloads of g keys with n variables take g(1 + n + n(n + 1)/2 + f) words where f are free, and r rows r(n + f), fewer if
r = g. With several rows a key it may be fewer, too, but then each change meets all of them, and the join is built:
Housing 4 takes 4 times as long.

Source: `fivm-on-flink` §4.6, where the sizes of the second input are misprinted: g₂(1 + n₂ + n₂(n₂+1)/2 + f₂) is meant.
"""

from dataclasses import replace

from squallpy.base.types import Kind
from squallpy.maintain.factorised.view_tree import ViewNode


def stop_push_down(view: ViewNode, *, is_root: bool = True) -> ViewNode:
    """Let views of one relation keep its rows where a primary key says that a key has one; the root keeps payloads."""
    below = (stop_push_down(child, is_root=False) if isinstance(child, ViewNode) else child for child in view.children)
    stops = not is_root and view.is_materialised and bool(view.lifts) and _has_one_row_a_key(view)
    return replace(view, children=tuple(below), keeps_rows=stops)


def _has_one_row_a_key(view: ViewNode) -> bool:
    # NB: one BIGINT cannot be a key
    key = view.leaf.primary_key if view.leaf else ()
    return bool(key) and {*key} <= {*view.keys} and all(v.type.kind is not Kind.BIGINT for v in view.lifts)
