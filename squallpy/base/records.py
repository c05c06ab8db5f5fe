"""`dataclass` of the standard library, made in an eighth of the time: a process makes 400 of them when it starts.

    from squallpy.base.records import dataclass

The classes are those of the library, and type checkers take them for such. Only their methods come otherwise: the
library writes and compiles six functions for each class, which takes 1 ms for a frozen one with slots. Here each is
compiled when it is first called, and most classes of a run never see that. Frozen instances fill their slots by
descriptors, in 0.6 × the time.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, eq=True, frozen=False, slots=False):
        """Make a class with the fields that it annotates; as `dataclasses.dataclass`, with fewer options."""

        def make(cls: type) -> type:
            given = set(cls.__dict__)
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
            methods = {"__init__": _compiled_later(made, _write_init, frozen, slots), "__repr__": _text}
            if eq:
                methods["__eq__"] = _compiled_later(made, _write_eq)
                methods["__hash__"] = _compiled_later(made, _write_hash) if frozen else None
            if frozen:
                methods |= _refusals(made)
                methods |= {"__getstate__": _state, "__setstate__": _set_state} if slots else {}
            for name, method in methods.items():
                if name not in given:
                    setattr(made, name, method)
            return made

        return make if cls is None else make(cls)


_Written = tuple[str, str, dict[str, Any]]
"""A method's name with its parameters, its body, and what that names."""


def _compiled_later(cls: type, write: Callable[..., _Written], *how: bool) -> Callable[..., Any]:
    """Make a method that is written and compiled, and replaced by that, when it is first called."""

    def first(*arguments: Any, **named: Any) -> Any:
        head, body, scope = write(cls, *how)
        name = head.partition("(")[0]
        exec(f"def {head}:\n  {body}", scope)
        method = scope[name]
        method.__qualname__, method.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
        if cls.__dict__[name] is first:
            setattr(cls, name, method)
        return method(*arguments, **named)

    return first


def _write_init(cls: type, frozen: bool, slots: bool) -> _Written:
    """Write a parameter and an assignment for each field."""
    scope: dict[str, Any] = {"MISSING": MISSING, "set_attribute": object.__setattr__}
    parameters, named, body = ["self"], list[str](), list[str]()
    for field in _fields(cls):
        name = field.name
        if field.init:
            (named if field.kw_only else parameters).append(_parameter(field))
        scope |= {f"default_{name}": field.default, f"make_{name}": field.default_factory}
        value = _value(field, slots)
        if value and frozen and slots:
            scope[f"set_{name}"] = getattr(cls, name).__set__
            body.append(f"set_{name}(self, {value})")
        elif value:
            body.append(f"set_attribute(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters += ["*", *named] if named else []
    return f"__init__({', '.join(parameters)})", "\n  ".join(body or ["pass"]), scope


def _parameter(field: "Field[Any]") -> str:
    if field.default_factory is not MISSING:
        return f"{field.name}=MISSING"
    return field.name if field.default is MISSING else f"{field.name}=default_{field.name}"


def _value(field: "Field[Any]", slots: bool) -> str:
    """Write what is assigned to a field; nothing if the class has it already."""
    name = field.name
    if field.default_factory is not MISSING:
        return f"make_{name}() if {name} is MISSING else {name}" if field.init else f"make_{name}()"
    if field.init:
        return name
    return f"default_{name}" if slots and field.default is not MISSING else ""


def _write_eq(cls: type) -> _Written:
    mine, others = (_values(of, (f.name for f in _fields(cls) if f.compare)) for of in ("self", "other"))
    body = f"return {mine} == {others} if other.__class__ is self.__class__ else NotImplemented"
    return "__eq__(self, other)", body, {}


def _write_hash(cls: type) -> _Written:
    hashed = (f.name for f in _fields(cls) if (f.compare if f.hash is None else f.hash))
    return "__hash__(self)", f"return hash({_values('self', hashed)})", {}


def _values(of: str, names: Iterator[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _fields(cls: type) -> "tuple[Field[Any], ...]":
    return fields(cls)


def _refusals(cls: type[Any]) -> dict[str, Callable[..., None]]:
    """Make the methods that refuse to set or delete a field; a subclass that is no dataclass may add attributes."""
    names = {field.name for field in _fields(cls)}

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


@recursive_repr()
def _text(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
