"""The compiled triggers of a plan in Spark's workers, which share the folder of modules with other processes of a host.

worker 1   interprets; a second in batches; lets a process compile      …   takes the functions from the disk
worker 2   begins later                                                     finds them there
"""

from squallpy.base.events import COMPILE, WARNING, first_line, log_event
from squallpy.codegen.program import PlanCode
from squallpy.runtime.compiled.background import BackgroundCompiler
from squallpy.runtime.compiled.code_cache import load_cached
from squallpy.runtime.compiled.functions import CompiledPlan


class WorkerCode:
    """The printed code of a plan, sent to workers, and its functions there, once the disk of the host has them."""

    def __init__(self, code: PlanCode) -> None:
        self._code = code
        self._compiled: CompiledPlan | None = None
        self._compiler: BackgroundCompiler | None = None

    @property
    def compiled(self) -> CompiledPlan | None:
        """The functions, if they are there; the first look is at the disk."""
        if self._compiler is None:
            self._compiler = BackgroundCompiler(self._code)
            try:
                module = load_cached(self._code.text)
                self._compiled = CompiledPlan(self._code, module) if module else None
            except Exception as error:  # NB: whatever the reason, the kernels go on without it
                log_event(COMPILE, WARNING, "not compiled", reason=first_line(error))
        return self._compiled

    def note(self, seconds: float) -> None:
        """Take note of the seconds of a task, after some of which the code is compiled beside it."""
        if self._compiler and self._compiled is None:
            self._compiled = self._compiler.note(seconds)
