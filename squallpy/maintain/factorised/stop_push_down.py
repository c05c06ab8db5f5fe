"""Stop of the push-down: relations keep rows, and joins have no records, where payloads would be larger.

dim(k, u, v), PRIMARY KEY (k)                  →   rows k, u, v, 4 words each, not 15
fact(k, j, x) that hardly has a (k, j) twice   →   rows k, j, x; the view of fact ⋈ dim by j is joined where it is read

Payloads of g keys with n variables take g(1 + n + n(n + 1)/2 + f) words where f are free, and r rows r(n + f), fewer if
r = g. With several rows a key it may be fewer, too, but then each change meets all of them, and the join is built:
Housing 4 takes 4 times as long. So without a PRIMARY KEY that says that a key has one row, only the largest relation of
a join keeps rows.

A change of another relation meets all that is joined in a view, not its fewer keys, if the view is virtual. That is no
more work where each row of the join meets few changes of others: however many rows there are, if others have one row
for each, which is never changed; and with deletes in others, if the view would have nearly as many keys as rows.

Of a join that nothing reads, as all beside it is static, only changes are computed, on the way to the root. It is
virtual if the root has no keys: a kernel adds up the products of all rows there, in less time than these take in two
views.

Source: `fivm-on-flink` §4.6, where the sizes of the second input are misprinted: g₂(1 + n₂ + n₂(n₂+1)/2 + f₂) is meant.
"""

from dataclasses import replace
from math import inf

from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor
from squallpy.maintain.factorised.cardinalities import Cardinalities, Records
from squallpy.maintain.factorised.join_graph import Leaf
from squallpy.maintain.factorised.view_tree import ViewNode

MOST_ROWS = 2
"""Rows a key of a relation that keeps rows."""
MOST_MET = 16
"""Changes of other relations that meet a row of a join which is built anew for each of them."""
LEAST_PART = 1 / 8
"""Words of a view's payloads, by those of the columns of all relations, up to which they are kept.

Not those of joins with the largest relation, each of whose rows would be multiplied and added up in one more view.
"""


def stop_push_down(root: ViewNode, cardinalities: Cardinalities | None = None, degree: int = 1) -> ViewNode:
    """Let views keep rows, or nothing, where payloads would take more; the root keeps payloads.

    Args:
        cardinalities: Estimates, if the rows of all relations are known; else only primary keys tell.
    """
    push = _PushDown(root.leaves, cardinalities, degree, not root.keys)
    children = (push.stop(child)[0] if isinstance(child, ViewNode) else child for child in root.children)
    return _with_stored_children(replace(root, children=tuple(children)))


@dataclass(frozen=True, slots=True)
class _PushDown:
    """The choice of what views keep, from the leaves upwards.

    Args:
        leaves: All relations of the join.
        adds_up: The root has no keys.
    """

    leaves: tuple[Leaf, ...]
    cardinalities: Cardinalities | None
    degree: int
    adds_up: bool

    def stop(self, view: ViewNode) -> tuple[ViewNode, Records]:
        """Choose what a view keeps, and estimate what a join finds in it."""
        if not view.views:
            view = replace(view, keeps_rows=self._keeps_rows(view))
            return view, self._records(view, self.cardinalities.rows_of(view.leaves) if self.cardinalities else inf)
        stopped = [self.stop(child) for child in view.views]
        view, inputs = replace(view, children=tuple(child for child, _ in stopped)), [found for _, found in stopped]
        rows = self.cardinalities.joined(inputs) if self.cardinalities else inf
        if not self._is_virtual(view, rows):
            return view, self._records(view, rows)
        variables = dict.fromkeys(v for found in inputs for v in found.variables)
        return replace(view, is_virtual=True), Records(tuple(variables), rows)

    def _keeps_rows(self, view: ViewNode) -> bool:
        leaf, known = view.leaf, self.cardinalities
        if not (leaf and view.lifts):
            return False
        if view.is_materialised and leaf.primary_key and {*leaf.primary_key} <= {*view.keys}:
            return True
        if not (known and leaf is known.largest):
            return False
        rows = known.rows_of((leaf,))
        keys = known.keys(view.keys, rows, (leaf,), is_least=True)
        words = rows * self._words(replace(view, keeps_rows=True))
        return rows <= MOST_ROWS * keys and words < keys * self._words(view)

    def _is_virtual(self, view: ViewNode, rows: float) -> bool:
        """True if a join, of so many rows, takes too many words to be kept, or is only on the way to the root."""
        known, leaves = self.cardinalities, view.leaves
        if not (view.is_stream and view.lifted):
            return False
        if self.adds_up and not view.is_materialised:
            return True
        others = [leaf for leaf in self.leaves if leaf not in leaves]
        if not known:
            return view.is_materialised and all(map(self._comes_once, others))
        fixed = [leaf for leaf in others if not leaf.has_deletes]
        if len(fixed) < len(others) and rows > MOST_ROWS * known.keys(view.keys, rows, leaves, is_least=True):
            return False
        words = known.keys(view.keys, rows, leaves) * self._words(view)
        is_large = known.largest in leaves or words > LEAST_PART * known.words
        return is_large and sum(map(known.matches, fixed)) <= MOST_MET

    def _comes_once(self, leaf: Leaf) -> bool:
        """True if a row of the join meets one row of a relation, which is never changed."""
        shared = {v for other in self.leaves if other is not leaf for v in other.variables}
        return bool(leaf.primary_key) and {*leaf.primary_key} <= shared and not leaf.has_deletes

    def _records(self, view: ViewNode, rows: float) -> Records:
        """Estimate the records of a view of so many rows."""
        if self.cardinalities and not view.keeps_rows:
            rows = self.cardinalities.keys(view.keys, rows, view.leaves)
        return Records(view.stored_keys, rows)

    def _words(self, view: ViewNode) -> int:
        """Count the words of a record."""
        lifts = view.stored_lifts
        return len(view.stored_keys) + (Cofactor(0, len(lifts), degree=self.degree).words if lifts else 1)


def _with_stored_children(view: ViewNode) -> ViewNode:
    """Store the views that are read instead of virtual ones."""
    is_read = view.is_virtual and view.is_materialised
    children = (replace(c, is_materialised=c.is_materialised or is_read) for c in view.views)
    below = tuple(map(_with_stored_children, children)) or view.children
    return replace(view, children=below, is_materialised=view.is_materialised and not view.is_virtual)
