"""Hashes and encodings of texts, as the bytes of UTF-8."""

from squallpy.base.types import BIGINT, VARCHAR
from squallpy.functions.entries import Operation, declare_derived, native
from squallpy.functions.type_rules import TEXT, WHOLE, takes

FUNCTIONS = (
    declare_derived("MD5(s)", "the MD5 hash in hexadecimal digits", "MD5('abc') → 900150983cd24fb0d6963f7d28e17f72"),
    declare_derived("SHA1(s)", "the SHA-1 hash in hexadecimal digits", "LEFT(SHA1('abc'), 8) → a9993e36", "SHA"),
    declare_derived(
        "SHA2(s, bits)",
        "the SHA-2 hash of 224, 256, 384 or 512 bits; 0 stands for 256, others give NULL",
        "LEFT(SHA2('abc', 256), 8) → ba7816bf",
        constant=1,
    ),
    native("CRC32(s)", takes(BIGINT, TEXT), "the cyclic redundancy check", "CRC32('abc') → 891568578"),
    native("BASE64(s)", takes(VARCHAR, TEXT), "the bytes in base 64", "BASE64('abc') → YWJj"),
    declare_derived("HEX(x)", "the bytes of a text, or an integer, in hexadecimal digits", "HEX(255) → FF"),
)

INTERNAL = (
    Operation("digest", 2, 2, takes(VARCHAR, TEXT), "a hash of the bytes, in hexadecimal digits", settings=1),
    Operation("hex", 1, 1, takes(VARCHAR, TEXT), "the bytes in hexadecimal digits"),
    Operation("hex_number", 1, 1, takes(VARCHAR, WHOLE), "the hexadecimal digits of an integer"),
)
