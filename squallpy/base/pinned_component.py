"""Components of plans put together by hand, with the physical choices that were made for them."""

from squallpy.base.records import dataclass

HASH, GRID, BROADCAST, SINGLE = PARTITIONINGS = ("hash", "grid", "broadcast", "single")


@dataclass(frozen=True, slots=True)
class PinnedComponent:
    """A source, a join or an aggregate of such a plan; what is not pinned is chosen by cost.

    Args:
        inputs: The names of the components below it; none for a source.
        relations: The streams and tables under each input.
        partitioning: One of PARTITIONINGS, or empty.
        keys: What is hashed, as it is written.
        fields: For each of the keys the fields that are equal to it, with their relations.
        broadcast: The number of the input that is at every partition.
        operator: The name of a join operator, or empty.
        parallelism: Partitions that it uses, counted from the first, or tasks that read a source; 0: all.
    """

    kind: str
    name: str
    inputs: tuple[str, ...]
    relations: tuple[tuple[str, ...], ...]
    partitioning: str = ""
    keys: tuple[str, ...] = ()
    fields: tuple[tuple[tuple[str, str], ...], ...] = ()
    broadcast: int = 0
    operator: str = ""
    parallelism: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def is_join(self) -> bool:
        return len(self.relations) == 2

    @property
    def choices(self) -> str:
        """The pinned choices as text: hash(o_custkey) on 2 partitions, SHJ"""
        if not self.inputs:
            return f"read by {self.parallelism} task{'s' * (self.parallelism > 1)}"
        by = {HASH: ", ".join(self.keys), BROADCAST: self.inputs[self.broadcast]}.get(self.partitioning)
        scheme = f"{self.partitioning}({by})" if by else self.partitioning
        at = f"on {self.parallelism} partition{'s' * (self.parallelism > 1)}" if self.parallelism else ""
        return ", ".join(filter(None, (" ".join(filter(None, (scheme, at))), self.operator))) or "by cost"
