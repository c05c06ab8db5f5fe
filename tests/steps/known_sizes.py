"""Engines that compile with rows of all relations known: then view trees keep rows, and joins have no records."""

from zlib import crc32

from squallpy.compiler import CompiledQuery
from squallpy.script_session import ScriptSession
from squallpy.testing.engines import (
    KilledEngine,
    LocalEngine,
    MemoryEngine,
    MovedEngine,
    PartitionedEngine,
    VolatileEngine,
)
from squallpy.testing.engines import SparkEngine as OnSpark


class KnownSizes(MemoryEngine):
    """Nearly as many rows of each relation, so that a key seems to have one; another one is the largest by script."""

    def _compile(self, session: ScriptSession) -> CompiledQuery:
        names = session.script.relations
        sizes = {name: 100 + crc32(f"{name} {session.text}".encode()) % 10 for name in names}
        return session.compile(session.script.queries, self._partitions, sizes, bounded=True)


class KnownVolatile(KnownSizes, VolatileEngine):
    """State nowhere."""


class KnownLocal(KnownSizes, LocalEngine):
    """State in a checkpoint."""


class KnownPartitioned(KnownSizes, PartitionedEngine):
    """Several partitions."""


class KnownKilled(KnownSizes, KilledEngine):
    """Several partitions, killed now and then."""


class KnownMoved(KnownSizes, MovedEngine):
    """The same, and then on others."""


class KnownSpark(KnownSizes, OnSpark):
    """On Spark."""
