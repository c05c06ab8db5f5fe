"""Errors of a matrix program, in names that it has itself."""

from collections.abc import Iterator
from contextlib import contextmanager

from squallpy.base.errors import SquallError
from squallpy.maintain.matrix.materialise import Maintained
from squallpy.maintain.matrix.nodes import Inverse, Matrix
from squallpy.runtime.matrix.algebra import SingularError


@contextmanager
def naming_overflow(maintained: Maintained, view: str) -> Iterator[None]:
    """Name a view in the OverflowError that is raised inside."""
    try:
        yield
    except OverflowError as error:
        told = f"a count in {maintained.written(maintained.named(view))} is beyond BIGINT"
        raise OverflowError(told) from error


def overflow(error: OverflowError) -> SquallError:
    """Make SQ5001 of an OverflowError."""
    return SquallError("SQ5001", str(error), hint="count in the arithmetic semiring")


def singular(maintained: Maintained, inverse: Matrix) -> SingularError:
    """Make SQ5011 of an inverse of a singular matrix."""
    assert isinstance(inverse, Inverse)
    return SingularError("SQ5011", f"{maintained.written(inverse.of)} is singular and has no inverse")
