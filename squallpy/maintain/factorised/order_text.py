"""Texts of variable orders → VariableOrder; blank lines and comments (`/* … */`, `-- …`) are allowed in them.

The keys in braces follow from the relations: those that are given have to be ancestors, and are not looked at further.
"""

import re

from squallpy.base.errors import Span, SquallError, nearest
from squallpy.frontend.source_text import ScriptText
from squallpy.maintain.factorised.derive_order import TYPES
from squallpy.maintain.factorised.variable_order import BROKEN, Schema, Variable, VariableOrder

_NAME = r"(?:`(?:[^`\n]|``)+`|[^\s,{}`]+)"
_HEADER = re.compile(r"(\d+)\s+(\d+)")
_VARIABLE = re.compile(rf"(\d+)\s+({_NAME})\s+(\w+)\s+(-?\d+)\s+\{{\s*((?:\d+\s*,\s*)*\d+)?\s*\}}\s+([01])")
_RELATION = re.compile(rf"({_NAME})\s+(-?\d+)(?:\s+({_NAME}(?:\s*,\s*{_NAME})*))?")
_COMMENT = re.compile(r"`[^`\n]*`|/\*.*?\*/|--[^\n]*", re.DOTALL)  # or a quoted name, in which there is none
_FORMAT = "a variable is written id name type parent {keys} cache, a relation name parent columns"
_KNOWN_TYPES = {*TYPES.values(), "byte", "short", "char", "float", "bigint", "varchar"}


def read_order(script: ScriptText, start: int = 0, end: int | None = None) -> VariableOrder:
    """Parse the order in text[start:end] of a script.

    Raises SquallError at its place: SQ1001 for a line that cannot be read, SQ2003 for a variable that is none, SQ2005
    for a type, SQ2007 for what is there twice, SQ2013 for the other rules of orders.
    """
    return _Reader(script, start, len(script.text) if end is None else end).order()


class _Reader:
    """Reads the lines of one order."""

    def __init__(self, script: ScriptText, start: int, end: int) -> None:
        self._script = script
        text = script.text[:start] + _COMMENT.sub(_blank, script.text[start:end])  # NB: offsets are the script's
        lines = [found.span() for found in re.compile(r"\S(?:.*\S)?").finditer(text, start)]
        first = lines.pop(0) if lines else (start, end)
        if not (header := _HEADER.fullmatch(text, *first)):
            told = "a variable order begins with the numbers of its variables and relations"
            raise SquallError("SQ1001", told, script.span(*first), "write 4 2")
        self._variables, self._relations = list[re.Match[str]](), list[re.Match[str]]()
        for line in lines:
            if found := _VARIABLE.fullmatch(text, *line):
                self._variables.append(found)
            elif found := _RELATION.fullmatch(text, *line):
                self._relations.append(found)
            else:
                place = script.span(*line)
                raise SquallError("SQ1001", f"line {place.line} is no line of a variable order", place, _FORMAT)
        for group, read, what in ((1, self._variables, "variables"), (2, self._relations, "relations")):
            if int(header[group]) != len(read):
                told = f"{len(read)} {what} are listed, not {header[group]}"
                raise SquallError("SQ1001", told, self._span(header, group), f"write {len(read)}, or list all {what}")

    def order(self) -> VariableOrder:
        self._variables.sort(key=lambda line: int(line[1]))
        for id, line in enumerate(self._variables):
            if (given := int(line[1])) < id:
                raise SquallError("SQ2007", f"two variables have the id {given}", self._span(line, 1))
            if given > id:
                raise SquallError(BROKEN, f"no variable has the id {id}", self._span(line, 1), "ids count from 0")
        ids = {_plain(line[2]).lower(): id for id, line in enumerate(self._variables)}
        relations = tuple(self._relation(line, ids) for line in self._relations)
        order = VariableOrder(tuple(map(self._variable, self._variables)), relations)
        for id, line in enumerate(self._variables):
            for key in re.findall(r"\d+", line[5] or ""):
                if int(key) >= len(ids) or not order.is_ancestor(int(key), id):
                    told = f'key {key} of "{order.variables[id].name}" is none of its ancestors'
                    raise SquallError(BROKEN, told, self._span(line, 5))
        for relation, line in zip(order.relations, self._relations, strict=True):
            if (lowest := order.lowest(relation)) != int(line[2]):
                told = f'"{relation.name}" hangs below its lowest variable, not {line[2]}'
                raise SquallError(BROKEN, told, self._span(line, 2), f"write {lowest}")
        return order

    def _span(self, line: re.Match[str], group: int = 0) -> Span:
        return self._script.span(*line.span(group))

    def _variable(self, line: re.Match[str]) -> Variable:
        type = line[3].lower()
        if type not in _KNOWN_TYPES:
            raise SquallError("SQ2005", f'unknown type "{type}"', self._span(line, 3), nearest(type, _KNOWN_TYPES))
        return Variable(_plain(line[2]), type, int(line[4]), line[6] == "1", self._span(line))

    def _relation(self, line: re.Match[str], ids: dict[str, int]) -> Schema:
        columns = list[int]()
        for column in re.compile(_NAME).finditer(line.string, *line.span(3)) if line[3] else ():
            name, place = _plain(column[0]), self._span(column)
            if name.lower() not in ids:
                known = (_plain(v[2]) for v in self._variables)
                raise SquallError("SQ2003", f'unknown variable "{name}"', place, nearest(name, known))
            if ids[name.lower()] in columns:
                raise SquallError("SQ2007", f'"{name}" is twice in "{_plain(line[1])}"', place)
            columns.append(ids[name.lower()])
        return Schema(_plain(line[1]), tuple(columns), self._span(line))


def _blank(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith("`") else re.sub(r"[^\n]", " ", found[0])


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
