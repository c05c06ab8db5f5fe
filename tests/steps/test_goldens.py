"""The golden plans are what the engine says now."""

from squallpy.testing.goldens import differences, scripts


def golden_plans() -> None:
    assert len(scripts()) == 9
    assert list(differences()) == [], "`make plans` accepts the difference"
