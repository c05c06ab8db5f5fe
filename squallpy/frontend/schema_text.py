"""The schema of JSON as a text gives it: columns, or one type.

a INT, b ARRAY<STRING>  →  STRUCT<a: INT, b: ARRAY<VARCHAR>>        ARRAY<INT>  →  ARRAY<INT>
"""

from functools import cache

from squallpy.base.errors import SquallError
from squallpy.base.types import Shape, Type, nested_type
from squallpy.frontend.script import parse_script
from squallpy.frontend.statements import CreateRelation


@cache
def read_schema(text: str) -> Type:
    """Read the columns of a STRUCT, or a type, as declarations of streams have them; raises SQ2004 for neither."""
    for columns in (text, f"only {text}"):
        try:
            (declared,) = parse_script(f"CREATE STREAM s (\n{columns}\n) USING json OPTIONS (path 's')", "")
        except (SquallError, ValueError):
            continue
        assert isinstance(declared, CreateRelation)
        names, types = [f.name for f in declared.relation.fields], [f.type for f in declared.relation.fields]
        return types[0] if columns is not text else nested_type(Shape.STRUCT, types, names)
    hint = "write 'a INT, b ARRAY<STRING>' or 'ARRAY<INT>'"
    raise SquallError("SQ2004", f"'{text[:60]}' is no schema", hint=hint)
