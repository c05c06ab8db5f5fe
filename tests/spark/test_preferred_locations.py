"""Which partition is on which host: it stays there as long as it can, and hosts are as busy as each other."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from squallpy.runtime.spark.preferred_locations import ExecutorProcess, assign, executors_of

HOSTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 4), min_size=1)


def test_partitions_are_spread_and_stay() -> None:
    first = assign(4, {"a": 1, "b": 1}, ())
    assert first == ("a", "b", "a", "b")
    assert assign(4, {"b": 1, "a": 1}, first) == first
    assert assign(4, {"b": 1}, first) == ("b", "b", "b", "b")
    assert assign(4, {"b": 1, "c": 1}, first) == ("c", "b", "c", "b")
    assert Counter(assign(4, {"a": 1, "b": 3}, ())) == {"a": 1, "b": 3}


def test_a_host_that_comes_takes_over() -> None:
    assert assign(4, {"a": 1, "b": 1}, ("a",) * 4) == ("a", "a", "b", "b")
    assert assign(2, {"a": 1, "b": 1, "c": 1}, ("a", "b")) == ("a", "b")


@given(st.integers(1, 9), st.lists(HOSTS, min_size=1, max_size=5))
def property_hosts_are_as_busy_as_each_other(partitions: int, history: list[dict[str, int]]) -> None:
    places: tuple[str, ...] = ()
    for hosts in history:
        before, places = places, assign(partitions, hosts, places)
        loads = Counter(places)
        assert len(places) == partitions and set(places) <= set(hosts)
        busiest = max(loads[host] / cores for host, cores in hosts.items())
        assert all(busiest <= (loads[host] + 1) / cores for host, cores in hosts.items())
        assert assign(partitions, hosts, places) == places
        grown = {host for host in hosts if loads[host] > Counter(before)[host]}
        assert all(p == q or p not in hosts or q in grown for p, q in zip(before, places, strict=False))


def test_an_executor_is_there_when_its_address_is_known_in_full() -> None:
    def executor(id: str, address: str, active: bool = True) -> SimpleNamespace:
        return SimpleNamespace(id=lambda: id, hostPort=lambda: address, isActive=lambda: active, totalCores=lambda: 2)

    found = [
        executor("driver", "10.0.0.1:4040"), executor("0", "10.0.0.2"), executor("1", "10.0.0.3:7077"),
        executor("2", "[::1]"), executor("3", "[::1]:7077"), executor("4", "10.0.0.4:7077", active=False),
    ]  # fmt: skip
    assert executors_of(context(found)) == {ExecutorProcess("1", "10.0.0.3", 2), ExecutorProcess("3", "[::1]", 2)}


def context(executors: list[SimpleNamespace]) -> Any:
    """A SparkContext whose status store lists those."""
    left = list(executors)
    listed = SimpleNamespace(hasNext=lambda: bool(left), next=lambda: left.pop(0))
    store = SimpleNamespace(executorList=lambda active: SimpleNamespace(iterator=lambda: listed))
    return SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: SimpleNamespace(statusStore=lambda: store)))
