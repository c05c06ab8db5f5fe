"""Sessions as Python, the prompt and pages use them: one in this process, or one that another process has.

with open_session(Settings(), Path.cwd(), checkpoint="state/") as session: …
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from squallpy.base.errors import Span, SquallError
from squallpy.base.settings import Settings
from squallpy.catalog.catalog import Catalog
from squallpy.catalog.relation import Field
from squallpy.frontend.query import SelectText
from squallpy.frontend.source_text import START, SourcePosition
from squallpy.live.entries import Entries
from squallpy.live.host import Services
from squallpy.live.live_session import LiveSession
from squallpy.live.outcome import Outcome
from squallpy.live.subscription import ChangeReader
from squallpy.runtime.observers.report import BatchReport

if TYPE_CHECKING:
    from squallpy.live.backend import Backend
    from squallpy.runtime.observers.protocol import Observer

IN_USE = "SQ6007"


class OpenSession(Protocol):
    """The calls of a session; `LiveSession` has the contract of each."""

    @property
    def settings(self) -> Settings: ...
    @property
    def version(self) -> str: ...
    @property
    def statements(self) -> tuple[str, ...]: ...
    @property
    def catalog(self) -> Catalog: ...
    @property
    def entries(self) -> Entries: ...
    @property
    def is_running(self) -> bool: ...
    @property
    def is_writable(self) -> bool: ...
    @property
    def is_attached(self) -> bool: ...
    @property
    def is_of_script(self) -> bool: ...
    @property
    def failure(self) -> Exception | None: ...

    def execute(
        self, text: str, file: str = "session", maintains: bool = False, position: SourcePosition = START
    ) -> Iterator[Outcome]: ...
    def push(self, name: str, rows: Any, op: str = "+") -> int: ...
    def step(self) -> BatchReport | None: ...
    def run_until_caught_up(self) -> int: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def table(self, name: str, span: Span | None = None) -> pa.Table: ...
    def reads_streams(self, query: SelectText) -> bool: ...
    def has_end(self, name: str) -> bool: ...
    def maintained_name(self, name: str) -> str: ...
    def columns(self, name: str, span: Span | None = None) -> tuple[Field, ...]: ...
    def schema(self, text: str, file: str = "session") -> tuple[Field, ...]: ...
    def stats(self, name: str) -> Mapping[str, Any]: ...
    def subscribe(
        self,
        name: str,
        with_snapshot: bool = False,
        limit: int | None = None,
        span: Span | None = None,
        newest: bool = False,
    ) -> ChangeReader: ...
    def on_change(self, name: str, callback: Callable[[Any], None]) -> None: ...


def open_session(
    settings: Settings,
    base: Path,
    observer: "Observer | None" = None,
    checkpoint: str | None = None,
    backend: "Backend | None" = None,
    writes: bool = False,
    services: Services | None = None,
) -> OpenSession:
    """Begin a session, or attach to the one that another process has at the checkpoint.

    Args:
        writes: An attached one may change what the session has.
        services: More that those who are attached to this one may ask.
    """
    try:
        return LiveSession(settings, base, observer, checkpoint, backend, services)
    except SquallError as error:
        if error.code != IN_USE or checkpoint is None:
            raise
        from squallpy.live.attached_session import attach

        if attached := attach(checkpoint, writes):
            return attached
        raise
