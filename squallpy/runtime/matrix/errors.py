"""What a program cannot compute, told in names that it has itself."""

from squallpy.base.errors import SquallError
from squallpy.maintain.matrix.materialise import Maintained
from squallpy.maintain.matrix.nodes import Inverse, Matrix
from squallpy.runtime.matrix.algebra import SingularError


def beyond(made: Maintained, view: str) -> OverflowError:
    """An overflow told as one of this view."""
    return OverflowError(f"a count in {made.written(made.named(view))} is beyond BIGINT")


def overflow(error: OverflowError) -> SquallError:
    """The same as users hear of it."""
    return SquallError("SQ5001", str(error), hint="count in the arithmetic semiring")


def singular(made: Maintained, inverse: Matrix) -> SingularError:
    """What has no inverse."""
    assert isinstance(inverse, Inverse)
    return SingularError("SQ5011", f"{made.written(inverse.of)} is singular and has no inverse")
