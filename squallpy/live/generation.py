"""Generations of a session's state in the making, while batches go on with the one in force.

    in force     6  7 |  8  9  10  11 |                what its sources read is kept meanwhile
    new             7 |  8 9 10       | 11  12  13     written as of batch 7, then applies what batches have read

It is put in force between two batches, when it has come as far; until then nothing of it counts.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import field

from squallpy.base.records import dataclass
from squallpy.checkpoint_identity import columns_read
from squallpy.compiler import CompiledQuery
from squallpy.live.fair_lock import Hold
from squallpy.live.live_executor import LiveExecutor
from squallpy.runtime.checkpoint.offset_log import OffsetLog
from squallpy.runtime.checkpoint.session_checkpoint import SessionCheckpoint
from squallpy.runtime.checkpoint.state_folders import Committed, StateLocation
from squallpy.runtime.local_executor import DurableLocalExecutor
from squallpy.runtime.query_input import keyed
from squallpy.runtime.replan import Filled, Replan
from squallpy.runtime.reshard import Reshard, spread_state
from squallpy.runtime.session_input import History, SessionInput
from squallpy.runtime.sources.arrivals import Decision
from squallpy.runtime.sources.input import BatchSpans, Input
from squallpy.runtime.sources.watched_files import WatchedFiles

ROUNDS = 5
"""Times that batches are caught up with beside others, before these have to wait for it."""
FEW = 2
"""Batches that may be left for then."""
Open = Callable[[Input, StateLocation], LiveExecutor]


def open_log(compiled: CompiledQuery, location: StateLocation, input: SessionInput) -> OffsetLog:
    """Open the log of the offsets of a query's streams at a location."""
    streams = {r.name: input.open(r) for r in compiled.relations if r.stream}
    return OffsetLog(location.durable, {n: s for n, s in streams.items() if isinstance(s, WatchedFiles)})


@dataclass
class Generation:
    """The state of queries at a new location, as of a number of batches; made between two of them.

    Args:
        replan: From the plan in force, whose log is `before`; None: there is none.
        filled: The state that is computed beside.
        open: Opens the executor at the location.
    """

    checkpoint: SessionCheckpoint
    compiled: CompiledQuery
    replan: Replan | None
    filled: Filled | None
    batches: int
    input: SessionInput
    before: OffsetLog | None
    open: Open
    number: int = field(init=False)
    location: StateLocation = field(init=False)
    log: OffsetLog = field(init=False)
    _executor: LiveExecutor | None = field(default=None, init=False)
    begun_beside: DurableLocalExecutor | None = field(default=None, init=False)
    """The executor in force, if batches go on with it."""
    is_in_force: bool = field(default=False, init=False)
    _read: Input = field(init=False)
    _steps: deque[BatchSpans] = field(default_factory=deque, init=False)

    def __post_init__(self) -> None:
        self.number, self.location = self.checkpoint.begin()
        self._current = self.checkpoint.current
        self.log = open_log(self.compiled, self.location, self.input)
        if self.before:
            self.log.take_over(self.before)
        self.log.write(Decision(self.batches - 1, self.input.spans(self.compiled.relations), self.input.times))

    @property
    def _streams(self) -> frozenset[str]:
        return frozenset(relation.name for relation in self.compiled.relations if relation.stream)

    def begin_beside(self, executor: DurableLocalExecutor) -> None:
        """Let an executor, and the sources, keep what is read again until this is closed."""
        self.begun_beside = executor
        executor.keep_log(True)
        self.input.hold(self._streams)
        sources = self.input.check(self.compiled.relations, columns_read(self.compiled))
        self._read = Input(sources, History((), {}), keyed(self.compiled.relations))

    def note(self, step: BatchSpans) -> None:
        """Take note of a batch of the generation in force."""
        spans = {name: span for name, span in step.spans.items() if name in self._streams}
        self._steps.append(BatchSpans(step.number, spans, step.times))

    def executor(self, input: Input) -> LiveExecutor:
        """Return the executor over an input; its state is written when it is first asked for."""
        if self._executor is None:
            self.write()
            self._executor = self.open(input, self.location)
        else:
            assert isinstance(self._executor, DurableLocalExecutor)
            self._executor.input = input
        return self._executor

    def write(self) -> None:
        """Write the state that the executor begins with."""
        facts, filled = None, self.filled.store if self.filled else None
        if self.replan and self._current:
            done = Committed(self._current.durable)
            reshard = Reshard(self.replan.old, self.replan.new, self.batches, done.facts or {}, {}, self.replan.held)
            facts = reshard(self._current, self.location, filled)
        else:
            assert filled is not None, "all that is new is computed"
            spread_state(self.compiled.plan, filled).write(self.location, self.batches)
        Committed(self.location.durable).commit(self.batches, facts)

    def run(self, hold: Hold) -> None:
        """Write it, and apply what batches have read meanwhile, as long as that is much.

        Args:
            hold: Keeps batches from being applied.
        """
        executor = self.executor(self._read)
        assert isinstance(executor, DurableLocalExecutor)
        executor.open_state()
        for _ in range(ROUNDS):
            if self.catch_up() <= FEW:
                return
        while len(self._steps) > FEW:  # NB: while one batch more goes on, so that there is an end
            with hold():
                self.catch_up(FEW)

    def catch_up(self, most: int | None = None) -> int:
        """Apply the batches that were noted, or so many; returns how many."""
        count = len(self._steps) if most is None else min(most, len(self._steps))
        for _ in range(count):
            assert self._executor
            step = self._steps.popleft()
            self.log.write(Decision(step.number, step.spans, step.times))
            self._executor.step(step)
            self._executor.commit()
        return count

    def close(self) -> None:
        """Let others forget what was kept for it, and delete its mapped files unless it is in force."""
        if self.begun_beside:
            self.begun_beside.keep_log(False)
            self.input.release(self._streams)
        if not self.is_in_force:
            if self._executor:
                self._executor.close()
            self.location.delete_local()
