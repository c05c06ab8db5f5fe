"""`squall run`: a run, from its options."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from squallpy import __version__
from squallpy.base.addresses import Address
from squallpy.base.batch_trigger import AS_IT_COMES, BatchTrigger
from squallpy.base.errors import SquallError
from squallpy.base.events import first_line
from squallpy.base.hidden_imports import hide_module
from squallpy.base.local_paths import local_path
from squallpy.base.records import dataclass
from squallpy.base.settings import parse_settings
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.plan_file import open_session
from squallpy.runtime.observers.event_log import EventLog
from squallpy.runtime.observers.late_rows import LateRows
from squallpy.runtime.observers.metrics import Metrics
from squallpy.runtime.observers.profile import Profile
from squallpy.runtime.observers.protocol import Observer, Observers, QueryStart
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.sinks.file_format import FileFormat
from squallpy.runtime.sinks.output_file import is_stream
from squallpy.runtime.sinks.protocol import Sink, Sinks
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.terminal.event_logging import EventHandler, logging_events
from squallpy.terminal.failures import Interrupted, Terminated
from squallpy.terminal.interrupt import interruptible
from squallpy.terminal.live_table import Live
from squallpy.terminal.progress import Progress
from squallpy.terminal.stdout_sinks import StdoutSink
from squallpy.terminal.terminal_detection import can_redraw

if TYPE_CHECKING:
    from squallpy.live.host import Hosted, Services
    from squallpy.live.hosted_run import HostedRun
    from squallpy.live.run_reader import RunReader


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options as given; None where the terminal decides."""

    script: Path
    text: str | None = None  # the script itself, if it is not in a file
    backend: str = "spark"
    master: str = "local[2]"
    batch_rows: int | None = None
    trigger: str | None = None
    mode: str | None = None
    format: str | None = None
    out: Path | str | None = None
    checkpoint: str | None = None
    metrics: tuple[Path | Address, ...] = ()
    ui: bool = False
    ui_address: Address | None = None
    late: Path | None = None
    profile: Path | None = None
    log_level: str | None = None
    log_format: str | None = None
    settings: tuple[str, ...] = ()
    conf: tuple[str, ...] = ()

    @property
    def has_page(self) -> bool:
        """True if the page is asked for."""
        return self.ui or self.ui_address is not None


@dataclass(frozen=True, slots=True)
class Choice:
    """Mode and format of the output."""

    mode: str
    format: str


def choose(request: RunRequest, terminal: bool, redraws: bool = True, endless: str = "", printed: int = 1) -> Choice:
    """Choose mode and format, given whether stdout is a terminal, and redraws; SQ7003 for options that contradict.

    Args:
        endless: The name of a stream that has no end, if there is one.
        printed: The number of queries without sinks.
    """
    if request.mode == "final" and endless:
        why = f"--mode final prints the answer at the end, and the stream {endless} has none"
        raise SquallError("SQ7003", why, hint="--mode changes")
    if request.mode == "live" and request.out:
        raise SquallError(
            "SQ7003", "--mode live shows a table, and --out shows nothing", hint="--mode changes or final"
        )
    if request.mode == "live" and not terminal:
        raise SquallError("SQ7003", "--mode live needs a terminal on stdout", hint="--mode changes or final")
    if request.mode == "live" and not redraws:
        why = "--mode live redraws its table, which this terminal cannot (TERM=dumb, or a notebook)"
        raise SquallError("SQ7003", why, hint="--mode changes or final")
    mode = request.mode or ("changes" if endless else None)
    if printed > 1 and not request.out and mode in ("live", "changes"):
        why = f"--mode {mode} prints one query, and {printed} have no sink"
        raise SquallError("SQ7003", why, hint="--out DIR has a folder for each; or give them sinks")
    if request.mode == "live" and request.format not in (None, "table"):
        raise SquallError("SQ7003", f"--mode live shows a table, not {request.format}", hint="--mode changes or final")
    at_end = "changes" if endless else "final"
    if request.out:
        return Choice(request.mode or at_end, FileFormat.of(str(request.out), request.format).name)
    if request.format == "parquet":
        raise SquallError("SQ7003", "--format parquet is for files", hint="name one: --out result.parquet")
    table = terminal and request.format in (None, "table") and printed < 2
    return Choice(
        request.mode or ("live" if table and redraws else at_end), request.format or ("table" if terminal else "csv")
    )


def spark_settings(request: RunRequest) -> dict[str, str]:
    """Read the settings of --conf, by name; SQ7003 for an invalid assignment, or without Spark."""
    if request.conf and request.backend != "spark":
        raise SquallError("SQ7003", f"--conf is for Spark, not for --backend {request.backend}", hint="leave one out")
    settings = {}
    for given in request.conf:
        name, equals, value = given.partition("=")
        if not equals or not name.startswith("spark."):
            raise SquallError("SQ7003", f"--conf {given} is not a setting of Spark", hint="--conf spark.NAME=VALUE")
        if name == "spark.master":
            raise SquallError("SQ7003", "--conf spark.master is set by --master", hint=f"--master {value}")
        settings[name] = value
    return settings


def run_script(request: RunRequest) -> None:
    """Run a script to its end; raises Interrupted when the user ended it before."""
    with logging_events(request.log_level, request.log_format) as events:
        _run_script(request, events)


def _run_script(request: RunRequest, events: EventHandler | None) -> None:
    if request.checkpoint is not None and not request.checkpoint.strip():
        raise SquallError("SQ7003", "--checkpoint has an empty name", hint="name a folder, or a URI that Arrow knows")
    choose(request, sys.stdout.isatty(), can_redraw(sys.stdout))
    _check_distinct(request)
    conf = spark_settings(request)
    trigger = BatchTrigger.parse(request.trigger) if request.trigger else AS_IT_COMES
    session = open_session(request.script, parse_settings(request.settings), request.text)
    with hide_module("pandas"), Progress("compiling", logs=events is not None).running():
        endless = session.endless
        printed = [query for query in session.script.queries if query.is_printed]
    for option in ("mode", "format", "out"):
        if session.script.queries and not printed and getattr(request, option) is not None:
            raise SquallError("SQ7003", f"--{option} is for a SELECT, and all queries have sinks", hint="leave it out")
    if request.trigger and not endless:
        raise SquallError("SQ7003", "--trigger is for streams without end", hint="declare one with watch 'true'")
    is_endless = endless.name if endless and not trigger.ends else ""
    choice = choose(request, sys.stdout.isatty() and bool(printed), can_redraw(sys.stdout), is_endless, len(printed))
    with hide_module("pandas"):  # NB: Arrow looks for it (0.3 s); after compiling, so that a mistake is told at once
        import pyarrow

        from squallpy.live.run_reader import RunReader
        from squallpy.runtime.checkpoint.checkpoint import hold_lease

        pyarrow.array([])
    starting = "starting Spark" if request.backend == "spark" else "starting"
    progress = Progress(starting, logs=events is not None and events.as_json)
    if events and not events.as_json:
        events.write = progress.say
    for notice in session.script.notices:
        progress.say(str(notice))
    if endless and is_endless and not request.checkpoint:
        progress.say(f"the stream {endless.name} has no end, and without --checkpoint nothing is kept")
    profile: Profile | None = None
    end = _End()
    try:
        with interruptible(progress.say) as interruption, progress.running(), ExitStack() as opened:
            served = _serve_metrics(request, session.settings.health_seconds, progress, opened)
            reader = RunReader()
            run = _hosted(request, session, reader)
            _serve_page(request, run, progress, opened)
            # NB: before any file is touched that another run may write
            lease = opened.enter_context(hold_lease(request.checkpoint)) if request.checkpoint else None
            _host(request.checkpoint, run, opened)
            opened.push(reader.end)  # NB: before anything is closed by which somebody may wait for a batch
            if request.profile:
                profile = Profile(request.profile)
                opened.callback(profile.write)
            options = RunOptions(
                backend=request.backend,
                master=request.master,
                batch_rows=request.batch_rows,
                trigger=trigger,
                changes=choice.mode != "final",
                final=choice.mode != "changes",
                out=(request.out and SinkSpec("--out", choice.format, {}, choice.mode, target=request.out)) or None,
                measured=bool(request.metrics),
                late=request.late is not None,
                checkpoint=request.checkpoint,
                lease=lease,
                profile=profile,
                conf=conf,
                tap=reader.tap if request.has_page else None,
            )
            sinks = [*_sinks(choice, session.settings.changes_marks, progress, opened)]
            events_of_run = EventLog(
                script=str(request.script), backend=request.backend, checkpoint=request.checkpoint, version=__version__
            )
            shown = [sink for sink in sinks if isinstance(sink, Observer)]
            looking = [*served, reader]
            observer = Observers(*shown, *_observers(request, opened), *looking, events_of_run, progress, end)
            gc.freeze()  # what is there stays; a run makes its own garbage
            gc.set_threshold(50_000, 10, 10)
            session.run(options, Sinks(*sinks), interruption.stop, interruption.working, observer)
    except Interrupted as stopped:
        progress.say(f"stopped at once; {how_to_resume(request.checkpoint)}")
        if endless and isinstance(stopped, Terminated):
            return
        raise type(stopped) from None
    for line in profile.table() if profile else ():
        progress.say(line)
    if interruption.stop.is_set():
        progress.say(f"stopped {end.where}; {how_to_resume(request.checkpoint)}")
        if not (endless and interruption.kind is Terminated):
            raise interruption.kind


def _check_distinct(request: RunRequest) -> None:
    """Raise SQ7003 for two outputs that would overwrite each other."""
    given = [("--out", request.out), ("--late", request.late), ("--profile", request.profile)]
    given += [("--metrics", each) for each in request.metrics if isinstance(each, Path)]
    seen: dict[str, str] = {}
    for option, path in given:
        if isinstance(path, Path) and not is_stream(path):
            if other := seen.get(os.path.realpath(path)):
                raise SquallError("SQ7003", f"{other} and {option} are the same file", hint="give each its own")
            seen[os.path.realpath(path)] = option


def _sinks(choice: Choice, marks: bool, progress: Progress, opened: ExitStack) -> Iterator[Sink]:
    """Make the sinks of queries that have none of their own; those `opened` are closed at the end of the run."""
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if choice.mode == "live":
        yield opened.enter_context(closing(Live(progress.quiet)))
    yield StdoutSink(sys.stdout.buffer, choice.format, choice.mode == "changes", color, progress.aside, marks)


def _observers(request: RunRequest, opened: ExitStack) -> Iterator[Observer]:
    """Make the observers of a run except its progress; those `opened` are closed at its end."""
    for each in request.metrics:
        if isinstance(each, Path):
            yield opened.enter_context(closing(Metrics(each, _resumes(request))))
    if request.late:
        yield opened.enter_context(closing(LateRows(request.late, _resumes(request))))


def _serve_metrics(request: RunRequest, patience: int, progress: Progress, opened: ExitStack) -> list[Observer]:
    """Serve metrics at the addresses that are given; those `opened` are closed at the end of the run."""
    addresses = [each for each in request.metrics if isinstance(each, Address)]
    if not addresses:
        return []
    from squallpy.runtime.observers.metrics_server import MetricsServer
    from squallpy.runtime.observers.prometheus import Prometheus

    metrics = Prometheus(patience)
    for address in addresses:
        server = opened.enter_context(MetricsServer(address, metrics))
        if not address.port:
            progress.say(f"metrics are at {server.url}")
    return [metrics]


def _serve_page(request: RunRequest, run: Callable[[], "HostedRun"], progress: Progress, opened: ExitStack) -> None:
    """Serve the page of the run, if it is asked for; it is closed at the end of the run."""
    if not request.has_page:
        return
    from squallpy.web.monitored_run import MonitoredRun
    from squallpy.web.page_server import ADDRESS, PageServer

    server = opened.enter_context(PageServer(request.ui_address or ADDRESS))
    page = MonitoredRun(run())
    opened.push(lambda kind, error, at: page.fail(first_line(error)) if error else None)
    server.show(page)
    progress.say(f"the page is at {server.url}")


def _hosted(request: RunRequest, session: ScriptSession, reader: "RunReader") -> Callable[[], "HostedRun"]:
    """Return what makes the run one that others read: few runs have such, and it takes long to import."""

    @cache
    def make() -> "HostedRun":
        from squallpy.live.hosted_run import HostedRun

        about = {"backend": request.backend, "checkpoint": request.checkpoint, "script": str(request.script)}
        return HostedRun(session.path, session.text, session.script, session.settings, reader, about)

    return make


def _host(checkpoint: str | None, run: Callable[[], "HostedRun"], opened: ExitStack) -> None:
    """Let others attach to the run by the folder of its checkpoint, if it has one."""
    if checkpoint is None or (path := local_path(checkpoint)) is None:
        return
    from squallpy.live.host import Host

    def found() -> "tuple[Hosted, Services]":
        from squallpy.web.monitoring import SERVICES

        return run(), SERVICES

    opened.enter_context(closing(Host(path))).serve(found)


def _resumes(request: RunRequest) -> bool:
    """True if there is a checkpoint from which the run goes on."""
    from squallpy.runtime.checkpoint.checkpoint import is_used

    return request.checkpoint is not None and is_used(request.checkpoint)


def how_to_resume(checkpoint: str | None) -> str:
    """Describe what the user can do after Ctrl-C."""
    if checkpoint:
        return f"the same command goes on from there, with --checkpoint {checkpoint}"
    return "without --checkpoint nothing is kept, the next run starts from the beginning"


class _End(Observer):
    """An observer that knows where the run ended."""

    def __init__(self) -> None:
        self._done = 0
        self._batches: int | None = 0

    @property
    def where(self) -> str:
        if self._batches is None:
            return f"after {self._done:,} {'batch' if self._done == 1 else 'batches'}"
        return f"after {self._done:,} of {self._batches:,} batches"

    def on_query_started(self, start: QueryStart) -> None:
        self._done, self._batches = 0, start.batches

    def on_query_progress(self, report: BatchReport) -> None:
        self._done = report.number + 1
