"""Lengths of time in microseconds, as texts."""

DAY = 86_400_000_000
UNITS = (("DAY", DAY), ("HOUR", 3_600_000_000), ("MIN", 60_000_000), ("SEC", 1_000_000), ("MS", 1_000))


def format_duration(micros: int) -> str:
    """Write a duration in its largest whole unit: 90_000_000 → 90 SEC"""
    unit, factor = next(((u, f) for u, f in UNITS if micros % f == 0), ("US", 1))
    return f"{micros // factor} {unit}"
