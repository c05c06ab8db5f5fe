"""Backfill of new views from all that was read of their streams, while batches go on."""

from collections.abc import Mapping, Sequence

from squallpy.catalog.relation import Relation
from squallpy.physical.plan import Plan
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.matrix.matrix_stage import MatrixStage
from squallpy.runtime.session_input import SessionInput
from squallpy.runtime.sources.input import BatchSpans, Input, OffsetSpan
from squallpy.runtime.sources.protocol import Offset
from squallpy.runtime.state.state_store import Store

ROUNDS = 5
"""Times that what batches have read meanwhile is read before the last one, between two batches."""


class StreamBackfill:
    """The state of a part of a program as of what was read when it begins, which is between two batches.

    Args:
        plan: That of the part, on one partition.
        relations: Those that it reads; `columns` of them.
    """

    def __init__(
        self, plan: Plan, input: SessionInput, relations: Sequence[Relation], columns: Mapping[str, Sequence[str]]
    ) -> None:
        self._input, self._names = input, [relation.name for relation in relations if relation.stream]
        self._history = input.history(relations, columns)
        self._executor = LocalExecutor(plan, self._history, with_changes=False)
        self._at = self._positions()
        self._live = Input({relation.name: input.open(relation) for relation in relations}, self._history.batches)
        input.hold(self._names)

    def run(self) -> None:
        """Replay the batches of the streams so far, then those that have come meanwhile, until few are left."""
        for number in range(self._history.batches.batches or 0):
            self._executor.step(self._history.step(number))
        for _ in range(ROUNDS):
            if not self._catch_up():
                return

    def finish(self) -> Store:
        """Read what batches have read since, and return the state; between two batches."""
        self._catch_up()
        return self._executor.store

    def matrices(self, input: Input, batch: int) -> MatrixStage | None:
        """Return the matrices of the state, which go on with other batches from a number on; None if it has none."""
        stage = self._executor.matrices
        if stage is not None:
            from squallpy.runtime.matrix.driver_stage import DriverMatrices  # NB: kernels take long to load

            assert isinstance(stage, DriverMatrices)
            stage.go_on(input, batch)
        return stage

    def close(self) -> None:
        """Let sources forget what they have kept for it."""
        self._input.release(self._names)

    def _catch_up(self) -> bool:
        """Apply what batches have read since; true if there was anything."""
        now = self._positions()
        spans: dict[str, OffsetSpan] = {
            name: (self._at[name], end) for name, end in now.items() if end != self._at[name]
        }
        self._at = now
        if spans:
            self._executor.input = self._live
            self._executor.step(BatchSpans(self._executor.next, spans, dict(self._input.times)))
        return bool(spans)

    def _positions(self) -> dict[str, Offset]:
        return {name: self._input.position(name) for name in self._names}
