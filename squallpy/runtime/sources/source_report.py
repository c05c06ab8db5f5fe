"""Reports on sources: how old what a batch has read of each is, and what is there that no batch has read yet."""

from collections.abc import Mapping

from squallpy.base.records import dataclass
from squallpy.runtime.sources.input import Input
from squallpy.runtime.sources.protocol import Backlog


@dataclass(frozen=True, slots=True)
class SourceReport:
    """A source after a batch.

    Args:
        committed: When the first row of the batch was committed at the source, in Unix time, if that is known.
        backlog: What is there and unread.
        waits_for: The name of a place that is not there, from which rows may come later.
    """

    committed: float | None = None
    backlog: Backlog | None = None
    waits_for: str = ""


def measure_sources(input: Input, batch: int) -> Mapping[str, SourceReport]:
    """Report on the sources of a batch that was decided on, by name."""
    reports = {}
    for name, (start, end) in input.step(batch).spans.items():
        source = input.sources[name]
        reports[name] = SourceReport(source.committed(start, end), source.backlog(end), source.waits_for)
    return reports
