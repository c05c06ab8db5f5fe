"""The golden plans in `plans/` are what EXPLAIN says."""

from squallpy.testing.goldens import compare_files


def golden_plans() -> None:
    changed = compare_files()
    assert not changed, f"run `make plans` and review the diff:\n{changed}"
