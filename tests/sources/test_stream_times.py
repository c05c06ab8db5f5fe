"""Processing time of streams: who is idle, and how far event time has gone on; by a clock that tests have."""

from squallpy.runtime.sources.stream_times import MICROS, StreamTime, StreamTimes, TimeLimits


def test_a_stream_is_idle_until_rows_come() -> None:
    times = StreamTimes({"r": TimeLimits(idle_timeout=30.0)}, 100.0)
    before = times.decide(129.0, set())
    assert before == {"r": StreamTime()} and not times.is_due(before)
    idle = times.decide(130.0, set())
    assert idle == {"r": StreamTime(is_idle=True)} and times.is_due(idle)
    times.note(idle)
    assert not times.is_due(times.decide(131.0, set())), "it has been said"
    back = times.decide(140.0, {"r"})
    times.note(back)
    assert back == {"r": StreamTime()} and times.decide(169.0, set()) == {"r": StreamTime()}


def test_event_time_goes_on_after_a_while_and_is_told_once_a_second() -> None:
    times = StreamTimes({"r": TimeLimits(close_after=60.0)}, 0.0)
    assert not times.is_due(times.decide(60.9, set()))
    first = times.decide(61.5, set())
    assert first == {"r": StreamTime(False, 0, int(1.5 * MICROS))} and times.is_due(first)
    times.note(first)
    assert not times.is_due(times.decide(62.0, set()))
    assert times.decide(70.0, set()) == {"r": StreamTime(False, int(1.5 * MICROS), 10 * MICROS)}
    times.note(times.decide(75.0, {"r"}))
    assert times.decide(135.0, set()) == {"r": StreamTime()}, "a minute after the last rows"


def test_a_clock_that_jumps_back_takes_nothing_back() -> None:
    times = StreamTimes({"r": TimeLimits(30.0, 60.0)}, 1000.0)
    told = times.decide(1100.0, set())
    times.note(told)
    assert told == {"r": StreamTime(True, 0, 40 * MICROS)}
    back = times.decide(10.0, set())
    assert back == {"r": StreamTime(False, 40 * MICROS, 40 * MICROS)} and not times.is_due(back)


def test_each_stream_has_its_own_limits() -> None:
    times = StreamTimes({"r": TimeLimits(idle_timeout=1.0), "s": TimeLimits(close_after=2.0)}, 0.0)
    assert times.decide(5.0, {"s"}) == {"r": StreamTime(is_idle=True), "s": StreamTime()}
    assert times.decide(9.0, {"r"}) == {"r": StreamTime(), "s": StreamTime(False, 0, 2 * MICROS)}
