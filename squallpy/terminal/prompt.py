"""The prompt: `squall> `, where a statement ends with a semicolon, however many lines it has."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from squallpy import __version__
from squallpy.terminal.failures import Interrupted, Quit
from squallpy.terminal.interactive_shell import InteractiveShell
from squallpy.terminal.result_printer import ResultPrinter
from squallpy.terminal.shell import SessionRequest
from squallpy.terminal.sql_words import words
from squallpy.terminal.statement_reader import is_complete
from squallpy.terminal.stderr_lines import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyPressEvent


PROMPT, CONTINUED = "squall> ", "   ...> "
HISTORY = "SQUALL_HISTORY"
"""The variable of the environment that names the file of what was typed; empty: none."""
_STYLE = Style.from_dict(
    {
        "prompt": "bold ansicyan", "continued": "ansibrightblack", "keyword": "bold ansiblue", "string": "ansigreen",
        "number": "ansimagenta", "comment": "italic ansibrightblack", "command": "bold ansiyellow",
    }
)  # fmt: skip
_WARM_UP = 0.05  # seconds after the prompt shows, when the engine begins to be imported
_LOOK = 0.25  # seconds between two looks whether something has failed in the background
_MOST_LEXED = 20_000  # characters: longer pastes have no colours
_SWITCH = 0.001  # seconds that a batch may hold the interpreter when a key is pressed


def run_prompt(request: SessionRequest, printer: ResultPrinter) -> int:
    """Read and run what is typed until Ctrl-D; returns the exit status."""
    sys.setswitchinterval(_SWITCH)
    shell = InteractiveShell(request, printer)
    typed = open_prompt(shell)
    say(f"squall {__version__}, .help lists the commands, Ctrl-D leaves")
    unfinished = ""
    while True:
        try:
            shell.tell_news()
            text = typed.prompt(default=unfinished, pre_run=lambda: _look_after(shell, typed))
            unfinished = typed.default_buffer.text if text is None else ""
            shell.run_lines((text or "").splitlines(keepends=True), "prompt")
        except (KeyboardInterrupt, Interrupted):  # NB: the latter between a statement and the prompt
            unfinished = ""
        except (EOFError, Quit):
            break
    if ends := shell.what_runs():
        say(ends)
    is_busy = shell.is_busy
    shell.close()
    if is_busy:  # NB: what works in the background is in no state to be waited for
        sys.stdout.flush()
        os._exit(0)
    return 0


def open_prompt(shell: InteractiveShell) -> "PromptSession[str]":
    """Make the prompt of a shell, with history, completion and colours."""
    has_color = not os.environ.get("NO_COLOR")
    return PromptSession(
        [("class:prompt", PROMPT)],
        prompt_continuation=[("class:continued", CONTINUED)],
        multiline=True,
        key_bindings=_keys(),
        history=open_history(),
        completer=ThreadedCompleter(_NameCompleter(shell)),
        complete_while_typing=False,
        enable_suspend=True,
        lexer=_SqlLexer() if has_color else None,
        style=_STYLE if has_color else None,
        color_depth=None if has_color else ColorDepth.DEPTH_1_BIT,
    )


def open_history() -> History:
    """Open the file of what was typed, by default ~/.squall_history; in memory where that cannot be written."""
    name = os.environ.get(HISTORY)
    if name == "":
        return InMemoryHistory()
    try:
        path = Path(name or "~/.squall_history").expanduser()
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600))
    except (OSError, RuntimeError):
        return InMemoryHistory()
    return FileHistory(path)


def _look_after(shell: InteractiveShell, typed: "PromptSession[str]") -> None:
    """Begin the session a moment after the prompt shows, and interrupt it when there is something to tell."""
    import asyncio

    asyncio.get_running_loop().call_later(_WARM_UP, shell.warm_up)

    async def look() -> None:
        while not shell.has_news:
            await asyncio.sleep(_LOOK)
        typed.app.exit()

    typed.app.create_background_task(look())


def _keys() -> KeyBindings:
    """Bind Enter: it submits what is complete, and begins a line of what is not."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: "KeyPressEvent") -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.cursor_position = len(buffer.text)
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    return keys


class _SqlLexer(Lexer):
    """The colours of what is typed."""

    def lex_document(self, document: Document) -> "Callable[[int], StyleAndTextTuples]":
        lines: list[StyleAndTextTuples] = [[]]
        if len(document.text) > _MOST_LEXED:
            return lambda number: [("", document.lines[number])]
        for kind, text in words(document.text):
            style = f"class:{kind}" if kind else ""
            first, *rest = text.split("\n")
            lines[-1].append((style, first))
            lines += [[(style, line)] for line in rest]
        return lambda number: lines[number] if number < len(lines) else []


class _NameCompleter(Completer):
    """Completions by what the session has."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> "Iterable[Completion]":
        from squallpy.terminal.completion import complete

        word, found = complete(document.text_before_cursor, self._shell.session if self._shell.is_open else None)
        for each in found:
            yield Completion(each.text, -len(word), display_meta=each.meaning)
