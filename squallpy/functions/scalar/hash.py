"""Hashes of values, as Spark has them; hashes and encodings of texts, as the bytes of UTF-8."""

from squallpy.base.types import BIGINT, INT, VARCHAR
from squallpy.functions.entries import Operation, declare_derived, native
from squallpy.functions.type_rules import TEXT, WHOLE, hashed, takes

FUNCTIONS = (
    declare_derived("MD5(s)", "the MD5 hash in hexadecimal digits", "MD5('abc') → 900150983cd24fb0d6963f7d28e17f72"),
    declare_derived("SHA1(s)", "the SHA-1 hash in hexadecimal digits", "LEFT(SHA1('abc'), 8) → a9993e36", "SHA"),
    declare_derived(
        "SHA2(s, bits)",
        "the SHA-2 hash of 224, 256, 384 or 512 bits; 0 stands for 256, others give NULL",
        "LEFT(SHA2('abc', 256), 8) → ba7816bf",
        constant=1,
    ),
    *(
        declare_derived(
            f"SHA{bits}(s)",
            f"the SHA-2 hash of {bits} bits in hexadecimal digits",
            f"LEFT(SHA{bits}('abc'), 8) → {start}",
        )
        for bits, start in ((224, "23097d22"), (256, "ba7816bf"), (384, "cb00753f"), (512, "ddaf35a1"))
    ),
    native(
        "HASH(x, …)",
        hashed(INT),
        "Spark's hash of all values, of 32 bits by Murmur3; NULLs are left out",
        "HASH('Spark', 1) → 205329825",
        nulls="never",
    ),
    native(
        "XXHASH64(x, …)",
        hashed(BIGINT),
        "Spark's hash of all values, of 64 bits by xxHash; NULLs are left out",
        "XXHASH64('Spark', 1) → -4449867541325528513",
        nulls="never",
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
