"""Typed scalar expressions. Every node knows its type and whether it may be NULL; constructors assert that types fit.

A literal holds the *physical* value of its type (`base/types.py`): DECIMAL scaled, DATE in days, TIMESTAMP in µs.
Columns are ids; names are for people.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from datetime import date, datetime, timedelta
from typing import Any, ClassVar

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import BOOLEAN, Kind, Type
from squallpy.functions.entries import Operation
from squallpy.functions.registry import OPERATIONS

MOST_DEPTH = 3_000  # levels of an expression; the stack of a thread, 8 MB, has room for them wherever one is evaluated


@dataclass(frozen=True, slots=True)
class Column:
    """A reference to column `id`, unique in the plan."""

    id: int
    name: str
    type: Type
    nullable: bool = True
    depth: ClassVar[int] = 0

    def __hash__(self) -> int:
        return self.id  # NB: compilation looks columns up more often than anything else

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; `value` None is NULL."""

    value: Any
    type: Type
    depth: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        """True if they are indistinguishable: 0.0 is not -0.0, and NaN is NaN."""
        if not isinstance(other, Literal) or self.type != other.type:
            return False
        if isinstance(self.value, float):
            return repr(self.value) == repr(other.value)
        return bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    @property
    def nullable(self) -> bool:
        return self.value is None

    def __str__(self) -> str:
        return show_literal(self)


@dataclass(frozen=True, slots=True)
class Compound:
    """An expression made of others; its depth and its hash are computed once."""

    depth: int = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)
    _columns: frozenset[Column] = field(init=False, repr=False, compare=False)  # set by `columns`

    def __post_init__(self) -> None:
        depth = 1 + max((child.depth for child in children(self)), default=0)  # type: ignore[arg-type]
        if depth > MOST_DEPTH:
            message = f"an expression nested more than {MOST_DEPTH:,} levels deep is not supported"
            raise SquallError("SQ3001", message, hint="compute parts of it in queries inside, or nest less")
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "_hash", hash(self._parts))

    @property
    def _parts(self) -> tuple[Any, ...]:
        names: tuple[str, ...] = self.__match_args__
        return tuple(getattr(self, name) for name in names)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts  # NB: the hash of a text differs between processes


@dataclass(frozen=True, slots=True)
class Call(Compound):
    """An operator or function applied to arguments; the names are the keys of `functions.registry.OPERATIONS`."""

    name: str
    args: tuple["Expr", ...]
    type: Type
    nullable: bool

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return show_call(self)


@dataclass(frozen=True, slots=True)
class Cast(Compound):
    """CAST(arg AS type); a text that does not parse, or a number too large, is an error at run time."""

    arg: "Expr"
    type: Type

    def __hash__(self) -> int:
        return self._hash

    @property
    def nullable(self) -> bool:
        return self.arg.nullable

    def __str__(self) -> str:
        return f"CAST({self.arg} AS {self.type})"


@dataclass(frozen=True, slots=True)
class Case(Compound):
    """CASE WHEN condition THEN value … ELSE otherwise END; all values and `otherwise` have type `type`."""

    whens: tuple[tuple["Expr", "Expr"], ...]
    otherwise: "Expr"
    type: Type
    _nullable: bool = field(init=False, repr=False, compare=False)  # set by `nullable`

    def __post_init__(self) -> None:
        Compound.__post_init__(self)
        assert all(c.type is BOOLEAN or c.type == BOOLEAN for c, _ in self.whens)
        assert all(are_stored_alike(v.type, self.type) for v in (*(v for _, v in self.whens), self.otherwise))

    def __hash__(self) -> int:
        return self._hash

    @property
    def nullable(self) -> bool:
        """True if a value may be NULL where the conditions choose it: CASE WHEN x > 0 THEN x ELSE 0 END is never."""
        try:
            return self._nullable
        except AttributeError:
            object.__setattr__(self, "_nullable", _is_case_nullable(self, frozenset()))
            return self._nullable

    def __str__(self) -> str:
        arms = " ".join(f"WHEN {c} THEN {v}" for c, v in self.whens)
        return f"CASE {arms} ELSE {self.otherwise} END"


@dataclass(frozen=True, slots=True)
class Lambda:
    """x -> body, the last argument of a call that applies it to elements. It is closed: what the body reads besides is
    an argument of that call, before it, and a parameter behind those that were written. So it has no children.

    TRANSFORM(a, x -> x + k)   →   array_transform(a, k, (x, k) -> x + k)

    Parameters are columns −1, −2, …, so that those of one text are equal.
    """

    parameters: tuple[Column, ...]
    body: "Expr"

    @property
    def type(self) -> Type:
        return self.body.type

    @property
    def nullable(self) -> bool:
        return self.body.nullable

    @property
    def depth(self) -> int:
        return 1 + self.body.depth

    def __str__(self) -> str:
        return f"({', '.join(p.name for p in self.parameters)}) -> {self.body}"


Expr = Column | Literal | Call | Cast | Case | Lambda


TRUE, FALSE = Literal(True, BOOLEAN), Literal(False, BOOLEAN)

MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}  # a < b  →  b > a
COMPARISONS = tuple(MIRRORED)


def conjuncts(predicate: Expr) -> tuple[Expr, ...]:
    """List the operands of AND: a AND (b AND c)  →  a, b, c."""
    return _operands(predicate, "and")


def disjuncts(predicate: Expr) -> tuple[Expr, ...]:
    """List the operands of OR: a OR (b OR c)  →  a, b, c."""
    return _operands(predicate, "or")


def conjunction(operands: Iterable[Expr]) -> Expr:
    """Join predicates by AND: a, b AND c, a  →  a AND b AND c; of none TRUE."""
    return _combine_operands("and", operands, TRUE)


def disjunction(operands: Iterable[Expr]) -> Expr:
    """Join predicates by OR: a, b OR c, a  →  a OR b OR c; of none FALSE."""
    return _combine_operands("or", operands, FALSE)


def _operands(expr: Expr, name: str) -> tuple[Expr, ...]:
    match expr:
        case Call(called, args) if called == name:
            return tuple(operand for arg in args for operand in _operands(arg, name))
    return (expr,)


def _combine_operands(name: str, operands: Iterable[Expr], neutral: Literal) -> Expr:
    once = tuple(dict.fromkeys(each for operand in operands for each in _operands(operand, name)))
    if len(once) < 2:
        return once[0] if once else neutral
    return Call(name, once, BOOLEAN, any(operand.nullable for operand in once))


OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}  # NOT (a < b)  →  a >= b


def is_strict(expr: Expr) -> bool:
    """True if an expression is an operator whose result is NULL wherever an operand is."""
    match expr:
        case Call("and" | "or" | "in"):
            return False
        case Call(_, args) if any(isinstance(arg, Lambda) for arg in args):
            return False  # NB: what a lambda reads besides is an argument, by whose NULL it decides itself
        case Call(name):
            return OPERATIONS[name].nulls not in ("never", "all", "own")
    return isinstance(expr, Cast)


def is_nullable(operation: Operation, args: tuple[Expr, ...], known: frozenset[Expr] = frozenset()) -> bool:
    """True if the result of an operation may be NULL, where `known` expressions are not."""
    match operation.nulls, args:
        case "never", _:
            return False
        case "divisor", (dividend, divisor):
            return _is_nullable_given(dividend, known) or not (isinstance(divisor, Literal) and bool(divisor.value))
        case "all", _:
            return all(_is_nullable_given(arg, known) for arg in args)
    return operation.nulls in ("always", "own") or any(_is_nullable_given(arg, known) for arg in args)


def _is_nullable_given(expr: Expr, known: frozenset[Expr]) -> bool:
    """True if an expression may be NULL where `known` ones are not: not x + 1 where x is known."""
    if not expr.nullable or expr in known:
        return False
    match expr:
        case _ if not known:
            return True
        case Cast(arg):
            return _is_nullable_given(arg, known)
        case Call(name, args) if name in OPERATIONS and any(arg.nullable for arg in args):
            return is_nullable(OPERATIONS[name], args, known)
        case Case():
            return _is_case_nullable(expr, known)
    return True


def _is_case_nullable(case: Case, known: frozenset[Expr]) -> bool:
    """True if a CASE may be NULL where `known` expressions are not."""
    for condition, value in case.whens:
        if value.nullable and _is_nullable_given(value, known | _known_where_true(condition)):
            return True
        known |= _known_where_false(condition, or_null=True)
    return _is_nullable_given(case.otherwise, known)


def _known_where_true(condition: Expr) -> frozenset[Expr]:
    """Collect what is not NULL where a condition is TRUE: x > 1 AND NOT y IS NULL  →  x > 1, x, y"""
    match condition:
        case Call("and", args):
            return frozenset[Expr]().union(*map(_known_where_true, args))
        case Call("or", args):
            return frozenset.intersection(*map(_known_where_true, args))
        case Call("not", (arg,)):
            return _known_where_false(arg)
    return _known_with(condition)


def _known_where_false(condition: Expr, or_null: bool = False) -> frozenset[Expr]:
    """Collect what is not NULL where a condition is FALSE, or NULL: x < 1 OR y IS NULL  →  x < 1, x, y, or y alone"""
    match condition:
        case Call("or", args):
            return frozenset[Expr]().union(*(_known_where_false(arg, or_null) for arg in args))
        case Call("and", args):
            return frozenset.intersection(*(_known_where_false(arg, or_null) for arg in args))
        case _ if or_null and condition.nullable:
            return frozenset()
        case Call("not", (arg,)):
            return _known_where_true(arg)
        case Call("is_null", (arg,)):
            return _known_with(arg)
    return _known_with(condition)


def _known_with(expr: Expr) -> frozenset[Expr]:
    """Collect what is not NULL where an expression is not: x + y > 1  →  x + y > 1, x + y, x, y"""
    if not expr.nullable:
        return frozenset()
    match expr:
        case Call("in", (arg, *_)):
            return frozenset((expr,)) | _known_with(arg)
        case Call() | Cast() if is_strict(expr):
            return frozenset((expr,)).union(*map(_known_with, children(expr)))
    return frozenset((expr,))


def column_of(expr: Expr, id: int) -> Column:
    """Make a column for the values of an expression."""
    return Column(id, expr.name if isinstance(expr, Column) else "x", expr.type, expr.nullable)


def is_null(expr: Expr) -> Call:
    """Build expr IS NULL."""
    return Call("is_null", (expr,), BOOLEAN, False)


def not_null(expr: Expr) -> Call:
    """Build NOT expr IS NULL."""
    return Call("not", (is_null(expr),), BOOLEAN, False)


def uncast(expr: Expr) -> Expr:
    """Strip a cast that changes no value: CAST(a AS BIGINT) of an INT a  →  a."""
    match expr:
        case Cast(Column() as column, type) if column.type.is_integer and type.kind is Kind.BIGINT:
            return column
    return expr


def are_stored_alike(a: Type, b: Type) -> bool:
    """True if values of both types are stored alike: a join variable may stand for an INT and for a BIGINT column."""
    return a == b or (a.is_integer and b.is_integer) or (a.kind is b.kind is Kind.DECIMAL and a.scale == b.scale)


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Call(_, args):
            return args
        case Cast(arg):
            return (arg,)
        case Case(whens, otherwise):
            return (*(e for when in whens for e in when), otherwise)
    return ()


def rebuild(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """Replace the children of an expression; the same object when none changed."""
    if all(a is b for a, b in zip(children(expr), new, strict=True)):
        return expr
    match expr:
        case Call():
            return replace(expr, args=new)
        case Cast():
            return replace(expr, arg=new[0])
        case Case():
            return replace(expr, whens=tuple(zip(new[:-1:2], new[1:-1:2], strict=True)), otherwise=new[-1])
    return expr


def transform(expr: Expr, rule: Callable[[Expr], Expr | None]) -> Expr:
    """Rewrite bottom-up by one rule; None leaves a node unchanged."""
    below = children(expr)
    node = rebuild(expr, tuple([transform(child, rule) for child in below])) if below else expr
    changed = rule(node)
    return node if changed is None else changed


class Rewriter:
    """A bottom-up rewriting by one rule, which sees each part once, however many expressions share it."""

    def __init__(self, rule: Callable[[Expr], Expr | None]) -> None:
        self._rule = rule
        self._memo = dict[int, tuple[Expr, Expr]]()  # by id; keeps the objects alive, so that no other gets their id

    def __call__(self, expr: Expr) -> Expr:
        """Rewrite an expression; itself if nothing changes."""
        if (known := self._memo.get(id(expr))) is None:
            below = children(expr)
            node = rebuild(expr, tuple([self(child) for child in below])) if below else expr
            changed = self._rule(node)
            known = self._memo[id(expr)] = expr, node if changed is None else changed
        return known[1]


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield the expression and all its descendants, top down."""
    waiting = [expr]
    while waiting:
        yield (node := waiting.pop())
        waiting.extend(reversed(children(node)))


def columns(expr: Expr) -> frozenset[Column]:
    """Collect the columns that an expression reads, once."""
    match expr:
        case Column():
            return frozenset((expr,))
        case Literal() | Lambda():
            return frozenset()
    try:
        return expr._columns
    except AttributeError:
        object.__setattr__(expr, "_columns", frozenset(e for e in walk(expr) if isinstance(e, Column)))
        return expr._columns


def as_nullable(column: Column) -> Column:
    """Return a column that may be NULL."""
    return column if column.nullable else replace(column, nullable=True)


def substitute(expr: Expr, mapping: dict[int, Expr]) -> Expr:
    """Replace columns by id."""
    if isinstance(expr, Column):
        return mapping.get(expr.id, expr)
    if not any(column.id in mapping for column in columns(expr)):
        return expr
    return transform(expr, lambda e: mapping.get(e.id) if isinstance(e, Column) else None)


EPOCH = date(1970, 1, 1)


def show_literal(literal: Literal) -> str:
    """Write a literal as SQL."""
    value = literal.value
    if value is None:
        return "NULL"
    match literal.type.kind:
        case Kind.VARCHAR:
            return "'" + str(value).replace("'", "''") + "'"
        case Kind.DATE:
            return f"DATE '{EPOCH + timedelta(days=value)}'"
        case Kind.TIMESTAMP:
            return f"TIMESTAMP '{datetime(1970, 1, 1) + timedelta(microseconds=value)}'"
        case Kind.DAY_TO_SECOND:
            return show_day_to_second(value)
        case Kind.DECIMAL if literal.type.scale:
            digits = str(abs(value)).rjust(literal.type.scale + 1, "0")
            return ("-" if value < 0 else "") + digits[: -literal.type.scale] + "." + digits[-literal.type.scale :]
        case Kind.BOOLEAN:
            return str(value).upper()
    return str(value)


def show_day_to_second(micros: int) -> str:
    """Write a length of time as Spark does: −1500000 µs  →  INTERVAL '-0 00:00:01.5' DAY TO SECOND"""
    seconds, rest = divmod(abs(micros), 1_000_000)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    time = f"{'-' * (micros < 0)}{days} {hours % 24:02}:{minutes % 60:02}:{seconds % 60:02}{fraction}"
    return f"INTERVAL '{time}' DAY TO SECOND"


ROUNDED = {"total": "+", "difference": "-", "product": "*", "remainder": "%"}
"""Operators of DECIMALs that round, by operation."""
INFIX = {
    "+", "-", "*", "/", "%", "||", "=", "<=>", "<>", "<", "<=", ">", ">=", "and", "or", "like", "similar", *ROUNDED,
}  # fmt: skip


def show_call(call: Call) -> str:
    infix = call.name in INFIX or call.name in ("not", "negate", "is_null", "like", "in")
    loose = ("and", "or") if call.name in ("and", "or") else INFIX if infix else ()
    args = [f"({a})" if isinstance(a, Call) and a.name in loose else str(a) for a in call.args]
    match call.name:
        case "not":
            return f"NOT {args[0]}"
        case "negate":
            return f"-{args[0]}"
        case "is_null":
            return f"{args[0]} IS NULL"
        case "like" if len(args) == 3:
            return f"{args[0]} LIKE {args[1]} ESCAPE {args[2]}"
        case "python_function":
            return f"{args[0][1:].removeprefix('def ').partition('(')[0]}({', '.join(args[1:])})"
        case "similar":
            return f"{args[0]} SIMILAR TO {' ESCAPE '.join(args[1:])}"
        case "in":
            return f"{args[0]} IN ({', '.join(args[1:])})"
        case name if name in ROUNDED:
            return f" {ROUNDED[name]} ".join(args)
        case name if name in INFIX:
            return f" {name.upper()} ".join(args)
    return f"{call.name.upper()}({', '.join(args)})"
