"""Engine settings: `--set k=v`, listed by `squall options`."""

from collections.abc import Iterable
from dataclasses import Field, field, fields, replace
from enum import Enum
from typing import Any

from squallpy.base.errors import SquallError, nearest
from squallpy.base.pinned_component import PinnedComponent
from squallpy.base.records import dataclass


class JoinOperator(Enum):
    """Distribution of a join over joiners (`adaptive-online-joins` §5, thesis §4.5)."""

    AUTO = "auto"  # by cost; Hybrid, or Dynamic, where that is a join of rows
    SHJ = "SHJ"  # by hash
    STATIC_MID = "StaticMid"  # a square grid
    STATIC_OPT = "StaticOpt"  # the grid that is best for the sizes of sources
    DYNAMIC = "Dynamic"  # a grid that adapts
    HYBRID = "Hybrid"  # by hash, but heavy keys on grids that adapt
    RANGE = "Range"  # a band join by ranges of the banded column, heavy ones on grids
    HYPERCUBE = "HyperCube"  # a dimension for each equality and each other relation

    @property
    def is_grid(self) -> bool:
        """True if every join is on a grid, or on a grid for each heavy key."""
        return self not in (JoinOperator.AUTO, JoinOperator.SHJ, JoinOperator.HYPERCUBE)

    @property
    def adapts(self) -> bool:
        return self not in (JoinOperator.SHJ, JoinOperator.STATIC_MID, JoinOperator.STATIC_OPT)


_SPECIAL = (JoinOperator.AUTO, JoinOperator.RANGE, JoinOperator.HYPERCUBE)
BINARY_OPERATORS = tuple(o.value for o in JoinOperator if o not in _SPECIAL)
"""Operators of any join of two inputs, or of any that has an equality."""
MOST_ITERATIONS = 10_000  # more are rather a recursion that does not end
MOST_STATEMENTS = 10_000  # each takes a millisecond or two to compile
MOST_PARTITIONS = 4096  # each is a task of every stage


def setting(
    default: Any,
    meaning: str,
    least: float | None = None,
    choices: tuple[str, ...] = (),
    name: str = "",
    most: float | None = None,
) -> Any:
    limits = {"least": least, "most": most, "choices": choices}
    return field(default=default, metadata={"meaning": meaning, "limits": limits, "name": name})


_PARTITION = "partition"  # one setting for each view


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the engine; the defaults suit a laptop."""

    partitions: int = setting(2, "state partitions on Spark, each with its own pools", 1, most=MOST_PARTITIONS)
    splits: int = setting(2, "Spark tasks that read one micro-batch", 1, most=MOST_PARTITIONS)
    batch_rows: int = setting(10_000, "tuples per micro-batch over all streams, unless --batch-rows says otherwise", 1)
    interleave: str = setting(
        "proportional",
        "order of the streams' rows: proportional (to their sizes), round-robin (a row of each in turn), "
        "or largest-last (the largest stream alone after all others)",
        choices=("proportional", "round-robin", "largest-last"),
    )
    snapshot_mb: int = setting(64, "size of a partition's log, in MB, at which its state is written out whole", 1)
    local_dir: str = setting("", "folder for mapped state; if empty, the host's SQUALLPY_LOCAL_DIR, else shared memory")
    move_rules: bool = setting(True, "rewrite rules that send less, and later, between partitions")
    move_sharing: bool = setting(True, "send and aggregate common subexpressions of statements once")
    fusion: bool = setting(True, "run statements in one stage where possible")
    partition: tuple[tuple[str, str], ...] = setting(
        (), "keys by which a view is partitioned, or everywhere; explain physical shows both"
    )
    join_operator: str = setting(
        "auto",
        "distribution of joins: auto (by cost; joins without an equality use an adaptive grid, or ranges where a band "
        "is narrow, equi-joins whose rows are the result use Hybrid), SHJ (by hash), Hybrid (by hash, with a grid for "
        "each heavy key), a grid: StaticMid (square), StaticOpt (best for the sizes of the sources), Dynamic "
        "(adaptive), Range (by ranges of what a band compares), or HyperCube (three relations or more at once)",
        choices=tuple(operator.value for operator in JoinOperator),
        name="join.operator",
    )
    join_epsilon: float = setting(
        0.25,
        "fraction of a relation that has to change before a grid of joiners may migrate: less keeps the load nearer to "
        "the optimum, and moves more state",
        0.01,
        name="join.epsilon",
        most=1.0,
    )
    join_capacity_mb: int = setting(
        0,
        "MB of tuples that a joiner should hold at most: a grid begins on one partition, and grows fourfold when its "
        "joiners hold half of that; 0: a grid uses all partitions from the start",
        0,
        name="join.capacity_mb",
    )
    join_groups: bool = setting(
        False,
        "use all partitions as joiners, in one grid for each power of two that they add up to; each tuple is sent "
        "to all grids. off: one grid, on the largest power of two of partitions",
        name="join.groups",
    )
    matrix_strategy: str = setting(
        "auto",
        "matrix programs are re-evaluated (reeval), or maintained by factored (incr) or dense (hybrid) deltas; "
        "auto: by cost",
        choices=("auto", "reeval", "incr", "hybrid"),
        name="matrix.strategy",
    )
    matrix_model: str = setting(
        "auto",
        "model of iteration of matrix programs: linear, exponential, skip-2, skip-4 …, as written; auto: by cost",
        name="matrix.model",
    )
    matrix_place: str = setting(
        "auto",
        "place of matrices on Spark: the driver, or blocks of rows and columns on the partitions; auto: blocks if "
        "their declared dimensions need more than 1 GB",
        choices=("auto", "driver", "blocks"),
        name="matrix.place",
    )
    matrix_deletes: str = setting(
        "refuse",
        "deletes from a matrix whose semiring has no subtraction: refuse, or reevaluate (which stores all rows)",
        choices=("refuse", "reevaluate"),
        name="matrix.deletes",
    )
    fivm_sums: str = setting(
        "compensated",
        "sums in cofactor matrices: compensated (double-doubles, which inserts and deletes leave as they were), or "
        "plain (doubles: half the memory)",
        choices=("compensated", "plain"),
        name="fivm.sums",
    )
    compile: str = setting(
        "background",
        "compile triggers to machine code, which is kept on disk: off, wait (before the first batch), background "
        "(beside the batches, once these have taken a second), or shadow (wait, and in one process without a "
        "checkpoint some batches are interpreted, too, and compared); squall explain code prints it, and the reasons "
        "why a part of a query is not compiled",
        choices=("off", "wait", "background", "shadow"),
    )
    health_seconds: int = setting(
        60, "seconds without a batch or a look at the input after which /healthz of --metrics :PORT says 503", 1
    )
    changes_marks: bool = setting(
        False,
        "mark the end of each batch (also one without changes) and of the query in changes on stdout, by a row of op "
        "=, or a line below a table",
        name="changes.marks",
    )
    sinks_part_rows: int = setting(
        10_000,
        "rows that a batch changes in a partition from which on, on Spark, the partition writes them to a sink itself, "
        "beside the others; fewer go through the driver",
        1,
        name="sinks.part_rows",
    )
    optimizer: bool = setting(True, "all passes; off: only those that are required (squall explain passes)")
    passes: str = setting("", "passes and rules to switch off: -NAME,-NAME (squall explain passes)")
    statements: int = setting(
        MOST_STATEMENTS, "maximum number of statements of a query: one that needs more is refused", 1
    )
    iterations: int = setting(
        MOST_ITERATIONS, "maximum number of iterations of WITH RECURSIVE: one that needs more is an error (SQ5015)", 1
    )
    components: tuple[PinnedComponent, ...] = ()  # NB: set by plans put together by hand, not by name


@dataclass(frozen=True, slots=True)
class Option:
    """One setting as `squall options` lists it."""

    name: str
    type: str
    default: str
    meaning: str


def list_settings() -> list[Option]:
    """List all settings in order."""
    return [
        Option(f"{f.name}.VIEW", "keys", "by cost", f.metadata["meaning"])
        if f.name == _PARTITION
        else Option(
            _public_name(f),
            f.type.__name__ if isinstance(f.type, type) else str(f.type),
            _show(f.default),
            f.metadata["meaning"],
        )
        for f in _named_settings()
    ]


def parse_settings(assignments: Iterable[str], settings: Settings | None = None) -> Settings:
    """Apply `name=value` assignments to settings; SQ7001 for an unknown name, SQ7003 for an unfit value."""
    settings = settings or Settings()
    known = {_public_name(f): f for f in _named_settings() if f.name != _PARTITION}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        head, _, view = name.strip().partition(".")
        if head.lower() == _PARTITION and view:
            settings = replace(settings, partition=_with_partition(settings.partition, view, text.strip()))
            continue
        name = name.strip().lower()
        if name not in known:
            raise SquallError("SQ7001", f'unknown setting "{name}"', hint=nearest(name, known))
        if not equals:
            raise SquallError(
                "SQ7003", f"--set {name} needs a value", hint=f"--set {name}={_show(known[name].default)}"
            )
        value = _value(name, text.strip(), known[name].default, **known[name].metadata["limits"])
        settings = replace(settings, **{known[name].name: value})
    return settings


def list_assignments(settings: Settings) -> list[str]:
    """List the `name=value` that make these settings of the defaults."""
    given = [(f, getattr(settings, f.name)) for f in _named_settings() if f.name != _PARTITION]
    keys = [f"{_PARTITION}.{view}={key}" for view, key in settings.partition]
    return [f"{_public_name(f)}={_show(value)}" for f, value in given if value != f.default] + keys


def _named_settings() -> list[Field[Any]]:
    """List the settings that users set by name."""
    return [f for f in fields(Settings) if f.metadata]


def _public_name(field: Field[Any]) -> str:
    """Return the name by which users set a field."""
    return str(field.metadata["name"] or field.name)


def _with_partition(before: tuple[tuple[str, str], ...], view: str, keys: str) -> tuple[tuple[str, str], ...]:
    """Add the keys of a view, in place of any given before."""
    if not keys:
        hint = f"--set {_PARTITION}.{view}=KEY, or everywhere"
        raise SquallError("SQ7003", f"--set {_PARTITION}.{view} needs keys", hint=hint)
    return (*(pair for pair in before if pair[0].lower() != view.lower()), (view, keys))


def _value(
    name: str, text: str, default: Any, least: float | None, most: float | None, choices: tuple[str, ...]
) -> Any:
    if isinstance(default, bool):
        if text.lower() in ("true", "on", "1", "yes"):
            return True
        if text.lower() in ("false", "off", "0", "no"):
            return False
        raise SquallError("SQ7003", f'{name} is on or off, not "{text}"')
    if isinstance(default, int | float):
        try:
            value = type(default)(text)
        except ValueError:
            kind = "whole number" if isinstance(default, int) else "number"
            raise SquallError("SQ7003", f'{name} is a {kind}, not "{text}"') from None
        if value != value:
            raise SquallError("SQ7003", f"{name} is a number, not {value}")
        if least is not None and value < least:
            raise SquallError("SQ7003", f"{name} is at least {least}, not {value}")
        if most is not None and value > most:
            raise SquallError("SQ7003", f"{name} is at most {most:,}, not {value:,}")
        return value
    if not choices:
        return text
    chosen = next((choice for choice in choices if choice.lower() == text.lower()), None)
    if chosen is None:
        either = f"{', '.join(choices[:-1])} or {choices[-1]}"
        raise SquallError("SQ7003", f'{name} is {either}, not "{text}"', hint=nearest(text, choices))
    return chosen


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value.value if isinstance(value, Enum) else value)
