"""`squall` without a command: the statements of -c or stdin, or the prompt where people type."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import count

from squallpy.base.addresses import Address
from squallpy.base.errors import SquallError
from squallpy.base.settings import parse_settings
from squallpy.terminal.failures import Quit
from squallpy.terminal.result_printer import ResultPrinter
from squallpy.terminal.shell import SessionRequest, Shell
from squallpy.terminal.stderr_lines import say
from squallpy.terminal.terminal_detection import can_redraw

PROMPT = "squall> "
_STDIN, _COMMAND = "<stdin>", "<command>"


def run_shell(
    commands: Sequence[str],
    format: str | None = None,
    settings: Sequence[str] = (),
    checkpoint: str | None = None,
    writes: bool = False,
    ui: bool = False,
    ui_address: Address | None = None,
) -> int:
    """Run statements, of -c or of stdin, or those that are typed at the prompt; returns the exit status."""
    if writes and checkpoint is None:
        raise SquallError("SQ7003", "--write changes a session that another process has", hint="name its --checkpoint")
    with ExitStack() as opened:
        page = None
        if ui or ui_address:
            from squallpy.web.page_server import ADDRESS, PageServer

            page = opened.enter_context(PageServer(ui_address or ADDRESS))
            say(f"the page is at {page.url}")
        return _run_shell(commands, format, SessionRequest(parse_settings(settings), checkpoint, writes, page))


def _run_shell(commands: Sequence[str], format: str | None, request: SessionRequest) -> int:
    if not commands and _is_typed() and can_redraw(sys.stdout):
        from squallpy.terminal.prompt import run_prompt

        return run_prompt(request, ResultPrinter(format))
    shell = Shell(request, ResultPrinter(format, not _is_typed()))
    with suppress(Quit):
        for command in commands:
            from squallpy.frontend.source_text import decode_script

            shell.run_lines(decode_script(os.fsencode(command), _COMMAND).splitlines(keepends=True), _COMMAND)
        if not commands:
            shell.run_lines(_stdin_lines(PROMPT if _is_typed() else ""), _STDIN)
    shell.close()
    return shell.status


def _is_typed() -> bool:
    """True if somebody types at a terminal and reads there."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _stdin_lines(prompt: str = "") -> Iterator[str]:
    """Yield the lines of stdin as they come, each behind a prompt."""
    from dataclasses import replace

    from squallpy.frontend.source_text import decode_script

    if sys.stdin is None:  # closed by the parent process
        raise SquallError("SQ4001", "cannot read statements from stdin: it is closed")
    for number in count(1):
        print(prompt, end="", flush=True)
        if not (line := sys.stdin.buffer.readline()):
            return
        try:
            text = decode_script(line, _STDIN)
        except SquallError as error:
            assert error.span
            raise SquallError(error.code, error.message, replace(error.span, line=number), error.hint) from None
        yield text
