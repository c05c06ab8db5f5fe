"""Arguments of table functions behind TABLE(…), by place or by name: each once, and none that is not read.

ols(TABLE(r), 'y', intercept => TRUE)   →   take("label") = 'y', take("intercept") = TRUE, done("label", "intercept")
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.logical.bind.literals import read_text

Refuse = Callable[[str, str, exp.Expr, str], SquallError]
"""Makes an error of its code, its message, the place where it is and a hint."""


class TableArguments:
    """The arguments of one call, which are taken in the order of their places.

    Args:
        call: The function's call, whose first argument is the table.
    """

    def __init__(self, refuse: Refuse, call: exp.Anonymous) -> None:
        self._refuse, self._name, self._call = refuse, call.name.lower(), call
        self._named = dict[str, exp.Kwarg]()
        for arg in call.expressions[1:]:
            if isinstance(arg, exp.Kwarg) and self._named.setdefault(arg.this.name.lower(), arg) is not arg:
                raise self._twice(arg)
        self._plain = [arg for arg in call.expressions[1:] if not isinstance(arg, exp.Kwarg)]

    def named(self, name: str) -> exp.Expr | None:
        """Return the argument of this name."""
        found = self._named.pop(name, None)
        return found.expression if found is not None else None

    def take(self, name: str) -> exp.Expr | None:
        """Return the next argument that has no name, or that of this name; raises SQ2007 if there are both."""
        if self._plain and name in self._named:
            raise self._twice(self._named[name])
        return self._plain.pop(0) if self._plain else self.named(name)

    def done(self, *known: str) -> None:
        """Raise SQ2005 for what is left, whose names are perhaps one of the known ones."""
        for arg in (*self._named.values(), *self._plain):
            title = arg.this.name.lower() if isinstance(arg, exp.Kwarg) else ""
            told = f'{self._name} has no argument "{title}"' if title else f"{self._name} has too many arguments"
            is_key = isinstance(arg, exp.Column) and self._is_partitioned
            hint = "for several columns write PARTITION BY (a, b)" if is_key else ""
            raise self._refuse("SQ2005", told, arg, nearest(title, known) if title else hint)

    @property
    def _is_partitioned(self) -> bool:
        given = (arg for arg in self._call.expressions if isinstance(arg, exp.Kwarg))
        return any(arg.this.name.lower() == "partition" for arg in given)

    def read_label(self, label: exp.Expr | None, columns: Sequence[str]) -> str:
        """Read the column that a regression explains, a text; raises SQ2003 for anything else."""
        if label is None or not read_text(label):
            told = f"{self._name} has no label"
            if label is not None:
                told = f"the label {label.sql('spark')} is no name of a column"
            hint = f"write {self._name}(TABLE(…), '{columns[-1] if columns else 'y'}')"
            raise self._refuse("SQ2003", told, label or self._call, hint)
        return read_text(label)

    def read_flag(self, name: str, argument: exp.Expr | None) -> bool:
        """Read TRUE or FALSE, FALSE if it is left out; raises SQ2012 for anything else."""
        if argument is None:
            return False
        if not isinstance(argument, exp.Boolean):
            raise self._refuse("SQ2012", f"the {name} is {argument.sql('spark')}", argument, "write TRUE or FALSE")
        return bool(argument.this)

    def _twice(self, arg: exp.Kwarg) -> SquallError:
        told = f'{self._name} has the argument "{arg.this.name.lower()}" twice'
        return self._refuse("SQ2007", told, arg, "give it once")
