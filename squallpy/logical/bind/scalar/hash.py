"""Hashes and encodings of texts."""

from squallpy.base.errors import SquallError
from squallpy.base.types import VARCHAR
from squallpy.logical.bind.scalar.expansion import Builder, expands
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Expr, Literal


def digest(algorithm: str) -> Builder:
    """Return the builder of MD5(x) and SHA1(x)."""
    return lambda text: call("digest", text, Literal(algorithm, VARCHAR))


expands("MD5")(digest("md5"))
expands("SHA1")(digest("sha1"))
for bits in (224, 256, 384, 512):
    expands(f"SHA{bits}")(digest(f"sha{bits}"))


@expands("SHA2")
def sha2(text: Expr, bits: Expr) -> Expr:
    """Build SHA2(x, 256), of 224, 256, 384 or 512 bits; 0 is 256, other numbers give NULL."""
    if not isinstance(bits, Literal) or not bits.type.is_integer:
        raise SquallError("SQ3001", "SHA2 of a computed number of bits is not supported yet")
    if bits.value not in (0, 224, 256, 384, 512):
        return Literal(None, VARCHAR)
    return call("digest", text, Literal(f"sha{bits.value or 256}", VARCHAR))


@expands("HEX")
def hexadecimal(value: Expr) -> Expr:
    return call("hex_number" if value.type.is_integer else "hex", value)
