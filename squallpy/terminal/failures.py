"""Failures of a run: one line on stderr, and an exit status.

0 ok    1 the query failed    2 usage, SQL or source    3 the engine cannot start    130 interrupted    143 terminated
"""

import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import click

from squallpy.base.errors import SquallError, nearest

OK, FAILED, USAGE, NO_ENGINE, INTERRUPTED, BROKEN_PIPE, TERMINATED = 0, 1, 2, 3, 130, 141, 143
_STATUS = {"SQ5": FAILED, "SQ8": NO_ENGINE, "SQ8007": FAILED}
_MOMENT = 0.02  # seconds until a signal that came at a bad moment is sent again
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}  # NB: of any writer


class Quit(Exception):
    """The wish to leave the shell."""


class Interrupted(BaseException):
    """The user wants to stop now; its text, if any, is still to be said.

    NB: no KeyboardInterrupt, by which the engine understands "after the batch", and click a blank line.
    """

    status = INTERRUPTED


class Terminated(Interrupted):
    """The system wants the process to stop (SIGTERM)."""

    status = TERMINATED


def guarded(work: Callable[[], object]) -> int:
    """Run a function, report its failure on stderr, and return the exit status."""
    try:
        with _interruptible():
            ended = work()
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return _tell(_usage(error))
    except (KeyboardInterrupt, click.Abort, Interrupted) as end:
        if not isinstance(end, Interrupted) or end.args:
            print("interrupted", file=sys.stderr)
        return end.status if isinstance(end, Interrupted) else INTERRUPTED
    except (BrokenPipeError, SystemExit) as end:  # NB: click raises the latter when the reader has closed the pipe
        if isinstance(end, SystemExit) and not end.code:  # NB: and when it has printed a completion of the shell's
            return OK
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # NB: or Python reports it once more at exit
        return BROKEN_PIPE
    except Exception as error:
        return report(error)
    return ended if isinstance(ended, int) else OK  # NB: click returns the status of an Exit that it has caught


def deferred(frame: FrameType | None) -> bool:
    """True if the compiler of kernels has called back into Python, which an exception would crash; then the signal
    comes again a moment later."""
    while frame is not None:
        if "llvmlite" in frame.f_code.co_filename:
            threading.Timer(_MOMENT, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
            return True
        frame = frame.f_back
    return False


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end commands without their own handling of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def press(_number: int, frame: FrameType | None) -> None:
        if not deferred(frame):
            raise Interrupted("interrupted")

    before = signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def report(error: Exception) -> int:
    """Report an error in a line on stderr, on a terminal with its place below; returns the exit status."""
    if isinstance(error, SquallError):
        return _tell(error)
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return _tell(_no_room(error))
    return _internal(error)


def _tell(error: SquallError) -> int:
    print(error, file=sys.stderr)
    if sys.stderr.isatty() and (caret := error.caret()):
        print(caret, file=sys.stderr)
    return status_of(error)


def status_of(error: SquallError) -> int:
    """Choose the exit status of an error."""
    return _STATUS.get(error.code, _STATUS.get(error.code[:3], USAGE))


def _usage(error: click.ClickException) -> SquallError:
    """Convert a usage error of click to one of ours."""
    hint, message = "", error.format_message().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption):
        known = [name for p in context.command.get_params(context) for name in p.opts] if context else []
        message, hint = f'unknown option "{error.option_name}"', _nearest(error.option_name, known)
    elif isinstance(error, click.exceptions.NoSuchCommand):
        known = context.command.list_commands(context) if context else []
        message, hint = f'unknown command "{error.command_name}"', nearest(error.command_name, known)
    else:
        message = message[:1].lower() + message[1:]
    return SquallError("SQ7004", " ".join(message.split()), hint=hint or _help(context))


def _no_room(error: OSError) -> SquallError:
    """Make the error for a disk that is full or read-only, when the writer is unknown."""
    where = f" to {error.filename}" if error.filename else ""
    return SquallError("SQ7005", f"cannot write{where}: {(error.strerror or '').lower()}")


def _nearest(name: str, known: list[str]) -> str:
    hint = nearest(name, known)
    return hint if hint.startswith("did you mean") else ""


def _help(context: click.Context | None) -> str:
    return f"{context.command_path} --help lists what there is" if context else ""


def _internal(error: Exception) -> int:
    if os.environ.get("SQUALL_DEBUG"):
        traceback.print_exc()
    said = " ".join(str(error).split())[:300]
    print(f"internal error: {type(error).__name__}: {said}, please report", file=sys.stderr)
    return FAILED
