"""Orders of the rows of a plan without ties."""

from squallpy.logical.aggregate_calls import SortKey, SortKeys
from squallpy.logical.composite_key import pack
from squallpy.logical.expressions import Column, Expr, columns
from squallpy.logical.nodes import Node
from squallpy.logical.plan_properties import has_one_row, unique_columns

MOST_KEYS = 8  # of an order without ties, each of which adds some products


def total_order(
    plan: Node,
    partition: tuple[Expr, ...],
    order: SortKeys,
    *,
    declared: bool = False,
    is_extended: bool = False,
    is_reversed: bool = False,
) -> SortKeys | None:
    """Shorten an order to the keys that tell the rows of each partition apart; None where all of them do not.

    Args:
        declared: A PRIMARY KEY is believed.
        is_extended: Where its own keys do not, an order continues with columns that do.
        is_reversed: Those columns are descending.
    """
    known = frozenset(expr.id for expr in partition if isinstance(expr, Column))
    for number in range(len(order) + 1):
        known |= {expr.id for expr, _, _ in order[:number] if isinstance(expr, Column)}
        if has_one_row(plan, known, declared):
            return order[:number]
    more = unique_columns(plan, declared) if is_extended else None
    if more is None:
        return None
    added = ((c, is_reversed, not is_reversed) for c in more if c.id not in known)
    return shorten((*order, *added), len(order), MOST_KEYS)


def drop_redundant_keys(partition: tuple[Expr, ...], order: SortKeys) -> SortKeys:
    """Drop the keys of an order that are constant, those that rows are partitioned by, and those that come again."""
    kept: dict[Expr, SortKey] = {}
    for key in order:
        if columns(key[0]) and key[0] not in partition:
            kept.setdefault(key[0], key)
    return tuple(kept.values())


def shorten(order: SortKeys, own: int, most: int) -> SortKeys:
    """Pack the last keys of an order into one text, if they are more than `most` in all; its `own` first ones stay.

    Keys that stay are looked up by their values, which those of a text are not.
    """
    kept = max(own, most - 1)
    if len(order) <= most or kept >= len(order):
        return order
    text, (_, down, nulls_first) = pack([expr for expr, _, _ in order[kept:]]), order[kept]
    return order if text is None else (*order[:kept], (text, down, nulls_first))
