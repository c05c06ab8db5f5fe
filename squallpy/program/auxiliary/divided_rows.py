"""The division of an auxiliary relation's rows among partitions that have copies of what they are made of."""

from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class DividedRows:
    """A way in which partitions divide the rows of a fixpoint: each makes those whose hash is its own.

    reach(x, y) ← START(x, y); reach(x, y) ← reach(x, z) ⋈ EDGE(z, y)      →      by x: START by x, EDGE everywhere

    Args:
        columns: For each recursive table, the positions of the columns that are hashed.
        fields: The fields that they are in the relation; () where it depends on the row which they are.
        number: The position, in the keys of the source view, of the number of the leaf.
        hashed: The leaves of which a partition has only the rows that its own are made of, with the positions of the
            hashed keys; it has all rows of others.
    """

    columns: tuple[tuple[int, ...], ...]
    fields: tuple[str, ...]
    number: int
    hashed: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def keys_of(self, leaf: int) -> tuple[int, ...] | None:
        """Return the positions of the hashed keys of a leaf; None if all partitions have its rows."""
        return dict(self.hashed).get(leaf)
