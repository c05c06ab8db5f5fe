"""Plan files: Python that puts plans together, which `squall run` and `squall explain` take like scripts."""

from pathlib import Path
from typing import TYPE_CHECKING

from squallpy.base.call_site import CallSite
from squallpy.base.errors import Span, SquallError
from squallpy.base.settings import Settings
from squallpy.frontend.source_text import read_script
from squallpy.script_session import ScriptSession

if TYPE_CHECKING:
    from squallpy.plans.plan_session import PlanSession

SUFFIX = ".py"
RUN_NAME = "__plan__"


def open_session(path: Path, settings: Settings | None = None, text: str | None = None) -> ScriptSession:
    """Open a session of a plan file, or of a script; `text` is that of a script that is no file."""
    return load_plan(path, settings) if text is None and path.suffix == SUFFIX else ScriptSession(path, settings, text)


def load_plan(path: Path, settings: Settings | None = None) -> "PlanSession":
    """Run a plan file, and open a session of its sinks in the order in which they were made.

    SQ1001 for one that is not Python, SQ1002 for one without a sink, SQ1003 for an exception that it raises.
    """
    import runpy
    import traceback

    from squallpy.plans.plan_session import PlanSession
    from squallpy.plans.sink import Sink

    read_script(path)  # NB: refuses what is no text
    try:
        found = runpy.run_path(str(path), run_name=RUN_NAME)
    except SquallError:
        raise
    except SyntaxError as error:
        line, column, text = error.lineno or 1, error.offset or 1, (error.text or "").rstrip("\n")
        raise SquallError("SQ1001", error.msg, Span(str(path), line, column, 1, text)) from None
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        span = CallSite(str(path), lines[-1] or 1, lines[-1] or 1).span() if lines else None
        raise SquallError("SQ1003", f"the plan raises {type(error).__name__}: {error}", span) from None
    sinks = list({id(value): value for value in found.values() if isinstance(value, Sink)}.values())
    if not sinks:
        raise SquallError("SQ1002", f"{path}: the plan has no Sink", hint="give it to a name: plan = Sink(…)")
    return PlanSession(sinks, settings, path)
