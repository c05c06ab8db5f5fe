"""The first stage of a plan that reads matrices: rows of streams in, changed cells of outputs out.

    stage = open_matrices(plan, input)        on the driver, or in blocks on partitions, as the plan says
    stage.begin(step)                         →  the message that tasks are handed for a batch
    stage.end(statistics)                        the batch is done; the next one follows

On the driver the message has the changed cells, which readers split among them. In blocks it has the commands for all
partitions; these run `supersteps` stages, the last of which reads the other relations, too.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from squallpy.base.timing import SILENT, Trace
from squallpy.physical.plan import Plan
from squallpy.runtime.batch.micro_batch import Computed
from squallpy.runtime.checkpoint.durable_folder import open_durable
from squallpy.runtime.checkpoint.state_folders import StateLocation
from squallpy.runtime.sources.input import BatchSpans, Input

Facts = Mapping[str, Any]


class MatrixStage(Protocol):
    """Matrices of a query as the driver sees them."""

    @property
    def facts(self) -> Facts | None:
        """State that is stored with the commit of the batch before; None if it is stored elsewhere."""
        ...

    @property
    def supersteps(self) -> tuple[int, int]:
        """The number of the batch's first superstep, counted over all batches, and how many the batch has."""
        ...

    def begin(self, step: BatchSpans, directive: str = "", slices: str = "") -> bytes:
        """Return the message for the tasks of a batch.

        `directive` and `slices`, encoded, are for the stages behind the supersteps.
        """
        ...

    def end(self, figures: Mapping[str, Mapping[str, Any]]) -> None:
        """Take note of what a batch has reported of each program."""
        ...


def open_matrices(
    plan: Plan, input: Input, place: StateLocation | None = None, facts: Facts | None = None
) -> MatrixStage | None:
    """Open the matrices of a plan, with their state at a place, if there is one; None if it has none."""
    if plan.matrices is None:
        return None
    # NB: imported here, for kernels take long to load
    from squallpy.runtime.matrix.blocks.block_stage import BlockMatrices
    from squallpy.runtime.matrix.driver_stage import DriverMatrices

    return (
        BlockMatrices(plan.matrices, input, facts)
        if plan.matrices.parts
        else DriverMatrices(plan.matrices, input, place)
    )


def compute(plan: Plan, stage: MatrixStage | None, step: BatchSpans, trace: Trace = SILENT) -> Computed | None:
    """Compute the changed cells of a batch in this process; None if the plan reads no matrices."""
    if stage is None or plan.matrices is None:
        return None
    from squallpy.runtime.matrix.reported_cells import decode_cells

    with trace("matrices"):
        return decode_cells(plan.matrices, stage.begin(step))


def hand_over(durable: str, batch: int, message: bytes) -> None:
    """Store the message of a batch where its tasks find it."""
    folder = open_durable(durable, "driver")
    folder.create(_handed(batch), lambda sink: sink.write(message))
    folder.delete(_handed(batch - 2))  # NB: tasks of the batch before may still be tried again


def read_handed(durable: str, batch: int) -> bytes:
    """Read the message that was handed over for a batch."""
    message = open_durable(durable).read(_handed(batch))
    assert message is not None, f"nothing was handed over for batch {batch}"
    return message


def _handed(batch: int) -> str:
    return f"made/{batch}"
