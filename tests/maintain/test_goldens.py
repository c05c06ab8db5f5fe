"""The golden plans in `plans/` are what EXPLAIN says."""

from squallpy.testing.goldens import differences


def golden_plans() -> None:
    changed = differences()
    assert not changed, f"run `make plans` and review the diff:\n{changed}"
