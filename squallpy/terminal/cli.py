"""`squall`: the commands and their options. Their implementations are imported when they run."""

import atexit
import gc
import sys
from collections.abc import Callable
from pathlib import Path

import click

from squallpy import __version__
from squallpy.terminal.failures import guarded


def main(arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit status."""
    args = sys.argv[1:] if arguments is None else arguments
    # NB: imports and plans stay alive; collecting garbage among them took a quarter of a short run
    gc.set_threshold(1_000_000, 10, 10)
    atexit.register(gc.freeze)
    return guarded(lambda: squall.main(args=args, prog_name="squall", standalone_mode=False))


def _ui_address(_context: click.Context, _parameter: click.Parameter, given: str | None) -> object:
    """Read the address of --ui-address."""
    if given is None:
        return None
    from squallpy.web.page_server import read_address

    return read_address(given)


_PAGE = (
    click.option("--ui", is_flag=True, help="Serve a page with plan, load and views, at 127.0.0.1:8090."),
    click.option(
        "--ui-address",
        callback=_ui_address,
        metavar="[HOST]:PORT",
        help="Serve it there; where others than this machine can reach it, its URL has a token.",
    ),
)


def _with_page(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options of the page."""
    for option in reversed(_PAGE):
        command = option(command)
    return command


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.version_option(__version__, message="squall %(version)s")
@click.option(
    "-c", "--command", "commands", multiple=True, metavar="SQL", help="Run statements, and leave. May be given again."
)
@click.option(
    "--format",
    type=click.Choice(["table", "csv", "json", "line"], case_sensitive=False),
    help="Of results.  [default: table on a terminal, else csv]",
)
@click.option("--set", "settings", multiple=True, metavar="K=V", help="An engine setting; squall options lists them.")
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="Keep the session here, a folder or a URI that Arrow knows; go on with it, or attach to who has it.",
)
@click.option("--write", "writes", is_flag=True, help="An attached session also changes what the other has.")
@_with_page
@click.pass_context
def squall(context: click.Context, /, commands: tuple[str, ...], **options: object) -> None:
    """Run SQL over streams: exact and fresh at all times.

    Without a command: a prompt for statements over views that live together, in this process, or those of -c or stdin.
    """
    if context.invoked_subcommand is None:
        from squallpy.terminal.shell_command import run_shell

        context.exit(run_shell(commands, **options))  # type: ignore[arg-type]
    given = {"-c": commands, "--ui": options["ui"], "--ui-address": options["ui_address"]}
    if option := next((name for name, value in given.items() if value), ""):
        from squallpy.base.errors import SquallError

        name = context.invoked_subcommand
        takes = {"-c": ("run", "explain"), "--ui": ("run",), "--ui-address": ("run", "ui")}[option]
        taken = f"squall {name} -c takes a script" if option == "-c" else f"squall {name} {option}"
        hint = taken if name in takes else "leave one out"
        raise SquallError("SQ7004", f"{option} is given, and the command {name}", hint=hint)


def _output(option: str) -> Callable[..., object]:
    """Check the value of an option that names an output file; --out may be a URI."""

    def convert(_context: click.Context, _parameter: click.Parameter, args: str | None) -> Path | str | None:
        from squallpy.base.local_paths import output_path, output_place

        find = output_place if option == "--out" else output_path
        return None if args is None else find(args, option)

    return convert


def _metrics(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> tuple[object, ...]:
    """Read the files and addresses of --metrics."""
    if not given:
        return ()
    from squallpy.base.addresses import Address
    from squallpy.base.local_paths import output_path

    return tuple(Address.parse(each) or output_path(each, "--metrics") for each in given)


_RUNNING = (
    click.argument("script", metavar="QUERY.sql", required=False),
    click.option("--master", default="local[2]", show_default=True, help="Spark's master."),
    click.option(
        "--batch-rows",
        type=click.IntRange(min=1),
        metavar="N",
        help="Tuples per micro-batch over all streams, in the order of setting interleave.  "
        "[default: setting batch_rows]",
    ),
    click.option(
        "--mode",
        type=click.Choice(["final", "changes", "live"], case_sensitive=False),
        help="The final result, every change, or a live table.  [default: live on a terminal, else final]",
    ),
    click.option(
        "--trigger",
        metavar="WHEN",
        help="When batches of a stream without end begin: as-it-comes, available-now (which ends), once, '10 seconds'.",
    ),
    click.option(
        "--format",
        type=click.Choice(["table", "csv", "json", "parquet"], case_sensitive=False),
        help="Of stdout or --out.  [default: table on a terminal, else csv; --out: by suffix]",
    ),
    click.option(
        "--out",
        callback=_output("--out"),
        metavar="PATH",
        help="Write a file (final) or a folder of files (changes), exactly once: the sink of queries without one.",
    ),
    click.option(
        "--checkpoint",
        metavar="DIR",
        help="Keep state here, a folder or a URI that Arrow knows; go on from it if it holds this query.",
    ),
    click.option(
        "--metrics",
        multiple=True,
        callback=_metrics,
        metavar="FILE|[HOST]:PORT",
        help="One JSON line per batch; or metrics for Prometheus at an address. May be given again.",
    ),
    click.option(
        "--late", callback=_output("--late"), metavar="FILE", help="Rows that came when their window had passed them."
    ),
    click.option(
        "--profile",
        callback=_output("--profile"),
        metavar="FILE",
        help="Where batches spend their time: a flame for speedscope.app, and a table on stderr.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
        help="Log events of the run on stderr, from this level on.  [default: info with --log-format, else none]",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"], case_sensitive=False),
        help="A line of words for each event, or of JSON, for all that is said on stderr.  [default: text]",
    ),
    click.option(
        "--set", "settings", multiple=True, metavar="K=V", help="An engine setting; squall options lists them."
    ),
)


_COMMAND_HELP = "The script itself, in place of QUERY.sql; its files are found from the working directory."


def _running(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options shared by all ways to run a script."""
    for option in reversed(_RUNNING):
        command = option(command)
    return command


@squall.command(short_help="Run the queries of a script over its streams.")
@click.option(
    "--backend",
    type=click.Choice(["spark", "local"], case_sensitive=False),
    default="spark",
    show_default=True,
    help="Spark, or this process: same plan, same answer.",
)
@click.option("--conf", multiple=True, metavar="K=V", help="A setting of Spark's, as spark-submit takes them.")
@click.option("-c", "--command", metavar="SQL", help=_COMMAND_HELP)
@_running
@_with_page
def run(script: str | None, command: str | None, **options: object) -> None:
    """Run the queries of a script over its streams, each until its input ends; QUERY.sql may be - for stdin.

    A plan put together in Python, PLAN.py, takes the place of a script.

    Ctrl-C ends the run after the batch in work, before the first one at once; a second one does not wait.
    """
    from squallpy.terminal.run_command import RunRequest, run_script
    from squallpy.terminal.script_argument import find_script

    path, text = find_script(script, command)
    run_script(RunRequest(path, text, **options))  # type: ignore[arg-type]


def _flight(_context: click.Context, _parameter: click.Parameter, given: str) -> object:
    """Read the address of --flight."""
    from squallpy.terminal.serve_command import read_address

    return read_address(given)


@squall.command(short_help="Keep views fresh for others who read them, by Arrow Flight SQL.")
@click.argument("script", metavar="[QUERY.sql]", required=False)
@click.option("-c", "--command", metavar="SQL", help=_COMMAND_HELP)
@click.option(
    "--flight",
    callback=_flight,
    required=True,
    metavar="[HOST]:PORT",
    help="Serve ADBC, JDBC and DBeaver there; where others than this machine can reach it, they need a token.",
)
@click.option("--checkpoint", metavar="DIR", help="Keep the session here; go on with the one that is there.")
@click.option("--set", "settings", multiple=True, metavar="K=V", help="An engine setting; squall options lists them.")
@click.pass_context
def serve(context: click.Context, /, script: str | None, command: str | None, **options: object) -> None:
    """Keep views fresh, in this process, for others who read them by Arrow Flight SQL.

    The session is that of the statements of QUERY.sql, or of -c; of a checkpoint; or of both. It ends by Ctrl-C.
    """
    from squallpy.terminal.script_argument import find_script
    from squallpy.terminal.serve_command import serve

    path, text = find_script(script, command) if script or command is not None else (None, None)
    context.exit(serve(path, text, **options))  # type: ignore[arg-type]


@squall.command(short_help="Show the page of a session that is kept in a folder.")
@click.argument("checkpoint", metavar="DIR")
@_PAGE[1]
@click.pass_context
def ui(context: click.Context, /, checkpoint: str, ui_address: object) -> None:
    """Serve the page of the session in a folder, until Ctrl-C.

    Where another process has the session, it goes on there, and the page reads from it; else this one goes on with it.
    """
    from squallpy.terminal.ui_command import show_page

    context.exit(show_page(checkpoint, ui_address))  # type: ignore[arg-type]


@squall.command(short_help="Run a script by way of spark-submit.", options_metavar="[OPTIONS]")
@_running
@click.argument("args", metavar="[-- OPTIONS OF SPARK-SUBMIT]", nargs=-1)
@click.option(
    "--deploy-mode",
    type=click.Choice(["client", "cluster"], case_sensitive=False),
    default="client",
    show_default=True,
    help="Where the driver is: here, or in the cluster (YARN, Kubernetes).",
)
@click.option("--print", "shown", is_flag=True, help="Show the line of spark-submit, and do not run it.")
@click.option("-c", "--command", hidden=True)  # NB: declared so that it gets an error message of its own
@click.pass_context
def submit(
    context: click.Context,
    /,
    script: str | None,
    command: str | None,
    args: tuple[str, ...],
    deploy_mode: str,
    shown: bool,
    **options: object,
) -> None:
    """Run the queries of a script by way of spark-submit, on a cluster as it is set up there.

    What comes after -- is for spark-submit: --conf, --queue, --archives …
    """
    from squallpy.base.errors import SquallError
    from squallpy.terminal.run_command import RunRequest
    from squallpy.terminal.script_argument import find_script
    from squallpy.terminal.submit_command import line_of, run_line

    if script == "-" or command is not None:
        hint = "write it to one; squall run takes - and -c"
        raise SquallError("SQ7004", "submit takes a script that is a file", hint=hint)
    path, _ = find_script(script, command)
    line = line_of(RunRequest(path, **options), deploy_mode, args)  # type: ignore[arg-type]
    if shown:
        click.echo(line)
    else:
        context.exit(run_line(line))


@squall.command(short_help="Show the queries of a script at a stage, or what an error means.")
@click.argument("arguments", metavar="[STAGE] QUERY.sql | CODE", nargs=-1)
@click.option("-c", "--command", metavar="SQL", help=_COMMAND_HELP)
@click.option("--time", "timed", is_flag=True, help="With passes and a script: what each pass takes.")
@click.option("--set", "settings", multiple=True, metavar="K=V", help="An engine setting; squall options lists them.")
def explain(arguments: tuple[str, ...], command: str | None, timed: bool, settings: tuple[str, ...]) -> None:
    """Show the queries of a script at a stage: logical, optimized, calculus, triggers (default), physical or stages.

    code is what is compiled for runs in one process, and the reasons why a part is not.

    SQ2003, or another code, shows what an error means, an example, and what to do.

    viewtree shows the variable orders and view trees of table functions over joins, such as cofactor.

    passes lists all passes of the optimizer, with --time and a script what each of them takes; trace shows the query
    before and after each pass that changes it; why tells the reason of each, what views are held for, and what other
    placements would cost. QUERY.sql may be - for stdin, or a plan put together in Python.
    """
    from squallpy.base.error_pages import error_page, is_code
    from squallpy.base.errors import SquallError, nearest
    from squallpy.base.settings import parse_settings
    from squallpy.explain import LISTS, STAGES, list_passes
    from squallpy.plan_file import open_session
    from squallpy.terminal.progress import Progress
    from squallpy.terminal.script_argument import find_script

    stages = list(arguments)
    if len(stages) == 1 and is_code(stages[0]):
        click.echo(error_page(stages[0]), nl=False)
        return
    if [each.lower() for each in stages[:1]] == ["passes"] and not timed:
        click.echo(list_passes(), nl=False)
        return
    script = stages.pop() if command is None and stages else None
    known = (*STAGES, *LISTS)
    if len(stages) > 1 or (script and script.lower() in known):
        raise SquallError("SQ7004", "explain takes a stage and one script", hint="squall explain triggers query.sql")
    stage = stages[0].lower() if stages else "triggers"
    if stage not in known:
        hint = nearest(stage, known)
        if command is not None and not hint.startswith("did you mean"):  # a second script
            find_script(stages[0], command)
        raise SquallError("SQ7004", f'unknown stage "{stages[0]}"', hint=hint)
    path, args = find_script(script, command)
    session = open_session(path, parse_settings(settings), args)
    with Progress("compiling").running():
        text = session.time_passes() if stage == "passes" else session.explain(stage)
    for notice in session.script.notices:
        click.echo(notice, err=True)
    click.echo(text, nl=False)


@squall.command(short_help="List the engine settings.")
def options() -> None:
    """List the engine settings, for --set."""
    from squallpy.base.settings import list_settings

    rows = [("name", "type", "default", "meaning"), *((o.name, o.type, o.default, o.meaning) for o in list_settings())]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for *cells, meaning in rows:
        click.echo("  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)), meaning]))


@squall.command(short_help="Look whether everything is here that a run needs.")
@click.pass_context
def doctor(context: click.Context) -> None:
    """Look whether everything is here that a run needs; exit status 3 if not."""
    from squallpy.terminal.doctor import examine
    from squallpy.terminal.failures import NO_ENGINE

    findings = examine()
    for finding in findings:
        click.echo(finding)
    if not all(finding.ok for finding in findings):
        context.exit(NO_ENGINE)


@squall.group(short_help="List or drop replication slots that runs have left at PostgreSQL.")
def slots() -> None:
    """List or drop replication slots that runs have left at PostgreSQL; names of ours begin with squall."""


@slots.command("list", short_help="List the slots of a database, with the bytes of its log that they hold.")
@click.argument("url")
def list_slots(url: str) -> None:
    """List the slots of a database, with the bytes of its log that they hold: squall slots list postgresql://h/db"""
    from squallpy.terminal.slots_command import show_slots

    show_slots(url)


@slots.command("drop", short_help="Drop a slot that no run uses.")
@click.argument("url")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop_slot(url: str, name: str, yes: bool) -> None:
    """Drop a slot that no run uses: a run whose checkpoint needs it cannot go on."""
    from squallpy.terminal.slots_command import drop

    drop(url, name, yes)
