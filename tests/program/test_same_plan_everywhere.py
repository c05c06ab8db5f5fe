"""A query has the same plan in every process, whatever order sets have there: a checkpoint is of one plan."""

import os
import subprocess
import sys
from pathlib import Path

from squallpy.testing.step_tests import list_step_tests, read_steps

PROGRAM = """
import sys
from pathlib import Path
from squallpy.script_session import ScriptSession
for script in sys.argv[1:]:
    print(ScriptSession(Path(script)).explain("physical"))
"""
NAMES = ("limit_in_alike", "over_nth_of_alike", "over_alike_backwards")


def differential_hash_seeds(tmp_path: Path) -> None:
    scripts, steps = [], list_step_tests()
    for name in NAMES:
        scripts.append(tmp_path / f"{name}.sql")
        scripts[-1].write_text(read_steps(steps[name]).script)
    plans = {plan_of(scripts, seed) for seed in range(1, 3)}
    assert len(plans) == 1


def plan_of(scripts: list[Path], seed: int) -> str:
    command = (sys.executable, "-c", PROGRAM, *map(str, scripts))
    given = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.run(command, env=given, capture_output=True, text=True, check=True).stdout
