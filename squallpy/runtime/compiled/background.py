"""Compilation beside a run, in a process of its own, for numba would keep this one's lock.

A run whose batches have taken a second, so that it is worth while, lets its triggers be compiled; when that is done,
they are taken from the disk between two batches.
"""

import subprocess
from time import perf_counter

from squallpy.base.events import COMPILE, INFO, WARNING, log_event
from squallpy.codegen.program import PlanCode
from squallpy.runtime.compiled.code_cache import code_folder, load_cached, start_compiler, write_code
from squallpy.runtime.compiled.functions import CompiledPlan

WORTH = 1.0  # seconds in batches before which no compiler starts
_LOOK = 0.1  # seconds between two looks whether it is done


class BackgroundCompiler:
    """The compiler of printed code, which starts when batches have taken long enough."""

    def __init__(self, code: PlanCode) -> None:
        self._code, self._spent, self._looked = code, 0.0, 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._is_done = False

    def note(self, seconds: float) -> CompiledPlan | None:
        """Take note of the seconds of a batch; returns the compiled functions, once, when they are there."""
        self._spent += seconds
        if self._is_done or self._spent < WORTH:
            return None
        if self._process is None:
            try:
                self._process = start_compiler(write_code(self._code.text, code_folder()), niceness=5)
            except OSError as error:
                self._fail(str(error))
            return None
        if (now := perf_counter()) < self._looked + _LOOK:
            return None
        self._looked = now
        return None if self._process.poll() is None else self.finish()

    def finish(self) -> CompiledPlan | None:
        """Wait for the compiler, if it runs; returns what it has made."""
        assert self._process
        self._is_done = True
        if status := self._process.wait():
            self._fail(f"the compiler ended with {status}")
            return None
        try:
            module = load_cached(self._code.text)
        except OSError as error:
            self._fail(str(error))
            return None
        if module is None:
            self._fail("nothing was compiled")
            return None
        log_event(COMPILE, INFO, "compiled", functions=len(self._code.groups) + len(self._code.runs))
        return CompiledPlan(self._code, module)

    def stop(self) -> None:
        """End the compiler, if it runs."""
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._is_done = True

    def _fail(self, reason: str) -> None:
        self._is_done = True
        log_event(COMPILE, WARNING, "not compiled", reason=reason)
