"""Numbers as texts, in formats of Java and in other bases; parts and escapes of URLs."""

from squallpy.base.types import VARCHAR
from squallpy.functions.entries import Operation, declare_derived, native
from squallpy.functions.type_rules import TEXT, WHOLE, takes

FUNCTIONS = (
    declare_derived(
        "FORMAT_NUMBER(x, n)",
        "a number with commas between thousands and n digits after the point, of two next ones the even one",
        "FORMAT_NUMBER(12345.675, 2) → 12,345.68",
        constant=1,
    ),
    declare_derived(
        "FORMAT_STRING(format [, x, …])",
        "a constant format of Java with values in the places of %s, %d, %05.1f, %x …",
        "FORMAT_STRING('%s: %05.1f', 'a', 2.25) → a: 002.3",
        "PRINTF",
        constant=0,
    ),
    native("BIN(n)", takes(VARCHAR, WHOLE), "the 64 bits of an integer, without zeros before them", "BIN(10) → 1010"),
    native(
        "CONV(s, from, to)",
        takes(VARCHAR, TEXT, WHOLE),
        "an integer of 64 bits in another base; signed if that is negative; NULL for no base from 2 to 36",
        "CONV('ff', 16, 10) → 255",
        nulls="always",
    ),
    native("URL_ENCODE(s)", takes(VARCHAR, TEXT), "a text as a parameter of a URL", "URL_ENCODE('a b&') → a+b%26"),
    native("URL_DECODE(s)", takes(VARCHAR, TEXT), "the text of a parameter of a URL", "URL_DECODE('a+b%26') → a b&"),
    native(
        "PARSE_URL(s, part [, key])",
        takes(VARCHAR, TEXT),
        "the HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY or USERINFO of a URL, or what its query has for a key",
        "PARSE_URL('https://a.org/x?k=v', 'QUERY', 'k') → v",
        nulls="always",
    ),
)

INTERNAL = (
    Operation("format_number", 2, 2, takes(VARCHAR, TEXT, WHOLE), "a number with commas between thousands"),
    Operation("format_value", 2, 2, takes(VARCHAR, TEXT), "a value in a format of Java", settings=1),
)
