"""Somebody who types at `squall` in a terminal, and reads what it shows, without its escape sequences."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
from pathlib import Path
from time import monotonic
from types import TracebackType

from tests.terminal.conftest import ENVIRONMENT

PATIENCE = 60.0
"""Seconds to wait for something to be shown, on a machine that does much else."""
_ERASED = re.compile(r"[^\n]*\r\x1b\[2K")
_ESCAPES = re.compile(r"\x1b\][^\x07]*\x07|\x1b[\[?][\d;?]*[ -/]*[@-~]|\x1b[=>]|\r")
CTRL_C, CTRL_D, ENTER, TAB = "\x03", "\x04", "\r", "\t"


class Typist:
    """A terminal with `squall` in it."""

    def __init__(self, folder: Path, *arguments: str, columns: int = 100, rows: int = 40, **environment: str) -> None:
        self.raw, self._read = b"", 0
        given = ENVIRONMENT | {"SQUALL_HISTORY": "", "PROMPT_TOOLKIT_NO_CPR": "1", **environment}
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            os.execve(sys.executable, [sys.executable, "-m", "squallpy.terminal", *arguments], given)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def __enter__(self) -> "Typist":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._fd)

    def type(self, text: str) -> None:
        """Press keys."""
        data = text.encode()
        while data:
            self._take(0)  # NB: or both sides wait for the other to read
            _, writable, _ = select.select([], [self._fd], [], 1)
            data = data[os.write(self._fd, data[:1_000]) :] if writable else data

    def run(self, text: str, shown: str) -> str:
        """Type a line, and wait for what it shows and the prompt behind it."""
        self.wait("squall>")
        self.type(text + ENTER)
        return self.wait(shown)

    def paste(self, text: str) -> None:
        """Paste a text, as terminals do: the application is told that it is one."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def wait(self, pattern: str) -> str:
        """Wait until something new is shown; returns what is shown up to its end."""
        end = monotonic() + PATIENCE
        while True:
            text = _ESCAPES.sub("", _ERASED.sub("", self.raw.decode(errors="replace")))
            if found := re.compile(pattern, re.DOTALL).search(text, self._read):
                before, self._read = self._read, found.end()
                return text[before : found.end()]
            assert monotonic() < end, f"waited for {pattern!r}, shown is:\n{text[self._read :]}"
            if not self._take(0.2):
                continue

    def wait_for_progress(self, text: str) -> None:
        """Wait until a line that erases itself has shown a text."""
        end, seen = monotonic() + PATIENCE, len(self.raw)
        while text.encode() not in self.raw[seen:]:
            assert monotonic() < end, f"waited for {text!r}"
            self._take(0.2)

    def end(self) -> int:
        """Wait until it has ended; returns its exit status."""
        end = monotonic() + PATIENCE
        while monotonic() < end:
            self._take(0.05)
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._pid = 0
                while self._take(0.1):
                    pass
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"it goes on:\n{self.raw[-2_000:].decode(errors='replace')}")

    def interrupt(self) -> None:
        """Press Ctrl-C where the terminal makes a signal of it."""
        self.type(CTRL_C)

    def _take(self, seconds: float) -> bool:
        """Read what has come; false if nothing has."""
        if not select.select([self._fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # NB: the other side has ended
            return False
        self.raw += data
        return bool(data)
