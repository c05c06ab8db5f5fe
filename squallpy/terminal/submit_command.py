"""`squall submit`: a run by way of spark-submit, with the exit status and messages of spark-submit."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import fields

from squallpy.base.errors import SquallError
from squallpy.base.settings import parse_settings
from squallpy.frontend.source_text import read_script
from squallpy.plan_file import open_session
from squallpy.runtime.spark.submit import SubmitCommand, submit_command
from squallpy.terminal.run_command import RunRequest, choose

_REPEATED = {"settings": "--set", "metrics": "--metrics"}
_SAID_ELSEWHERE = {"script", "text", "backend", "master", "conf"}  # in the line


def line_of(request: RunRequest, deploy_mode: str, given: Sequence[str]) -> SubmitCommand:
    """Make the command line of spark-submit, after checks that need no Spark."""
    settings = parse_settings(request.settings)
    choose(request, terminal=False)
    if deploy_mode == "client":
        _ = open_session(request.script, settings).script
    else:  # NB: its files may be on the cluster, not on this host
        read_script(request.script)
    if given and not given[0].startswith("-"):
        raise SquallError("SQ7004", f'unexpected argument "{given[0]}"', hint="options of spark-submit come after --")
    return submit_command(request.script, tuple(_options(request)), request.master, deploy_mode, given)


def run_line(line: SubmitCommand) -> int:
    """Run the command line and return its exit status; Ctrl-C is left to the query, which ends after its batch."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.run(line.command, env=os.environ | dict(line.environment), check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def _options(request: RunRequest) -> Iterator[str]:
    """List the options as they were given."""
    for field in fields(request):
        value = getattr(request, field.name)
        if field.name in _REPEATED:
            for each in value:
                yield from (_REPEATED[field.name], str(each))
        elif isinstance(value, bool):
            yield from (f"--{field.name}",) if value else ()
        elif field.name not in _SAID_ELSEWHERE and value is not None:
            yield from (f"--{field.name.replace('_', '-')}", str(value))
