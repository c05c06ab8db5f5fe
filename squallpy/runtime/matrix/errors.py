"""Errors of a matrix program, in names that it has itself."""

from types import TracebackType

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.maintain.matrix.decompositions import Decomposition
from squallpy.maintain.matrix.materialise import IncrementalProgram
from squallpy.maintain.matrix.matrix_expressions import Inverse, Iterate, Matrix
from squallpy.runtime.matrix.algebra import SingularError
from squallpy.runtime.matrix.factors import no_factor
from squallpy.runtime.matrix.iterations import UndefinedError, divergence


@dataclass(slots=True)  # NB: a generator's context takes four times as long to enter, and triggers enter many
class NamingOverflow:
    """Context that names a view in the OverflowError that is raised inside."""

    maintained: IncrementalProgram
    view: str

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, OverflowError):
            written = self.maintained.in_own_names(self.maintained.find_matrix(self.view))
            raise OverflowError(f"a count in {written} is beyond BIGINT") from error


def overflow(error: OverflowError) -> SquallError:
    """Make SQ5001 of an OverflowError."""
    return SquallError("SQ5001", str(error), hint="count in the arithmetic semiring")


def undefined(maintained: IncrementalProgram, operation: Matrix) -> UndefinedError:
    """Make SQ5011 of an inverse or a factor that a matrix has not, SQ5016 of an iteration that does not converge."""
    if isinstance(operation, Iterate):
        return divergence(operation, str(maintained.in_own_names(operation)))
    if isinstance(operation, Decomposition):
        return no_factor(operation, str(maintained.in_own_names(operation.of)))
    assert isinstance(operation, Inverse)
    return SingularError("SQ5011", f"{maintained.in_own_names(operation.of)} is singular and has no inverse")
