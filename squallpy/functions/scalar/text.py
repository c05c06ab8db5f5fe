"""Functions of texts. Positions count characters from 1; regular expressions are RE2's."""

from squallpy.base.types import BOOLEAN, INT, VARCHAR
from squallpy.functions.entries import Operation, declare_derived, native
from squallpy.functions.type_rules import TEXT, WHOLE, as_texts, takes

FUNCTIONS = (
    native("UPPER(s)", takes(VARCHAR, TEXT), "the text in upper case", "UPPER('Straße') → STRASSE", "UCASE"),
    native("LOWER(s)", takes(VARCHAR, TEXT), "the text in lower case", "LOWER('ABC') → abc", "LCASE"),
    native(
        "INITCAP(s)",
        takes(VARCHAR, TEXT),
        "each word with a capital, the rest in lower case",
        "INITCAP('ab CD') → Ab Cd",
    ),
    native(
        "LENGTH(s)",
        takes(INT, TEXT),
        "the number of characters",
        "LENGTH('größe') → 5",
        "LEN CHAR_LENGTH CHARACTER_LENGTH",
    ),
    native("OCTET_LENGTH(s)", takes(INT, TEXT), "the bytes in UTF-8", "OCTET_LENGTH('größe') → 7", call="octets"),
    declare_derived("BIT_LENGTH(s)", "the bits in UTF-8", "BIT_LENGTH('abc') → 24"),
    native(
        "SUBSTRING(s, start [, length])",
        takes(VARCHAR, TEXT, WHOLE),
        "the part from a position on; a negative start counts from the end",
        "SUBSTRING('abcdef', 2, 3) → bcd",
        settings=1,
    ),
    declare_derived("LEFT(s, n)", "the first n characters", "LEFT('abcdef', 2) → ab"),
    declare_derived("RIGHT(s, n)", "the last n characters", "RIGHT('abcdef', 2) → ef"),
    declare_derived(
        "LPAD(s, n [, fill])", "n characters, filled up with spaces or fill at the start", "LPAD('7', 3, '0') → 007"
    ),
    declare_derived(
        "RPAD(s, n [, fill])", "n characters, filled up with spaces or fill at the end", "RPAD('7', 3, '.') → 7.."
    ),
    declare_derived("LTRIM(s)", "the text without spaces at its start", "LTRIM('  ab') → ab"),
    declare_derived("RTRIM(s)", "the text without spaces at its end", "RTRIM('ab  ') → ab"),
    declare_derived(
        "BTRIM(s [, characters])",
        "the text without spaces, or those characters, at both ends",
        "BTRIM('xxabx', 'x') → ab",
    ),
    declare_derived(
        "REPLACE(s, old [, new])", "every old replaced by new, or taken out", "REPLACE('a-b-c', '-', '+') → a+b+c"
    ),
    native(
        "TRANSLATE(s, characters, others)",
        takes(VARCHAR, TEXT),
        "each of the characters replaced by the other at its place, or taken out",
        "TRANSLATE('abcb', 'bc', 'x') → axx",
        settings=1,
    ),
    native(
        "REPEAT(s, n)", takes(VARCHAR, TEXT, WHOLE), "the text n times in a row", "REPEAT('ab', 3) → ababab", settings=1
    ),
    declare_derived("SPACE(n)", "n spaces", "'a' || SPACE(2) || 'b' → a  b"),
    declare_derived(
        "SPLIT(s, pattern [, n])",
        "an ARRAY of the parts between the matches of a regular expression, n at most",
        "SPLIT('a1b', '[0-9]') → [a, b]",
        constant=1,
    ),
    declare_derived(
        "STRING_SPLIT(s, separator)",
        "an ARRAY of the parts between constant separators",
        "STRING_SPLIT('a.b', '.') → [a, b]",
        "STR_SPLIT STRING_TO_ARRAY",
        constant=1,
    ),
    declare_derived(
        "REVERSE(s)", "the characters, or the elements of an ARRAY, in reverse order", "REVERSE('abc') → cba"
    ),
    declare_derived(
        "OVERLAY(s, other, start [, length])",
        "s with another text at a position, in place of as many characters or length",
        "OVERLAY('abcdef', 'XY', 2, 3) → aXYef",
    ),
    declare_derived(
        "CONCAT(a, …)",
        "the texts, or the elements of ARRAYs, one after the other; NULL if one is NULL",
        "CONCAT('a', 1, 'b') → a1b",
    ),
    declare_derived(
        "CONCAT_WS(separator [, s, …])",
        "the texts, and the elements of ARRAYs, that are not NULL, with a constant separator between them",
        "CONCAT_WS('-', 'a', NULL, 'b') → a-b",
        constant=0,
    ),
    declare_derived(
        "SPLIT_PART(s, separator, n)",
        "the n-th part between separators, from the end if n is negative; '' if there is none",
        "SPLIT_PART('a,b,c', ',', -1) → c",
        constant=2,
    ),
    declare_derived(
        "SPLIT_INDEX(s, separator, n)",
        "the n-th part between separators, counted from 0; NULL if there is none",
        "SPLIT_INDEX('a,b,c', ',', 1) → b",
        constant=2,
    ),
    native(
        "SUBSTRING_INDEX(s, separator, n)",
        takes(VARCHAR, TEXT, TEXT, WHOLE),
        "what stands before the n-th separator, or behind it counted from the end",
        "SUBSTRING_INDEX('a.b.c', '.', 2) → a.b",
        settings=1,
    ),
    native(
        "INSTR(s, part)",
        takes(INT, TEXT),
        "the position at which part first occurs; 0 if it does not",
        "INSTR('abcb', 'b') → 2",
        "STRPOS",
        settings=1,
    ),
    declare_derived(
        "LOCATE(part, s [, start])",
        "the position at which part first occurs, from start on; 0 if it does not",
        "LOCATE('b', 'abcb', 3) → 4",
        "POSITION CHARINDEX",
    ),
    native(
        "FIND_IN_SET(s, list)",
        takes(INT, TEXT),
        "the place of a text in a list with commas; 0 if it is not there, or has a comma itself",
        "FIND_IN_SET('ab', 'abc,b,ab,c') → 3",
        settings=1,
    ),
    native(
        "STARTSWITH(s, part)",
        takes(BOOLEAN, TEXT),
        "TRUE if the text begins with part",
        "STARTSWITH('abc', 'ab') → true",
        "STARTS_WITH",
        settings=1,
    ),
    native(
        "ENDSWITH(s, part)",
        takes(BOOLEAN, TEXT),
        "TRUE if the text ends with part",
        "ENDSWITH('abc', 'bc') → true",
        "ENDS_WITH",
        settings=1,
    ),
    native(
        "CONTAINS(s, part)",
        takes(BOOLEAN, TEXT),
        "TRUE if part occurs in the text",
        "CONTAINS('abc', 'b') → true",
        settings=1,
    ),
    native(
        "RLIKE(s, pattern)",
        takes(BOOLEAN, TEXT),
        "TRUE if a regular expression matches a part of the text",
        "RLIKE('abc', 'b.') → true",
        "REGEXP",
        settings=1,
    ),
    declare_derived(
        "LIKE(s, pattern [, escape])",
        "s LIKE pattern, as a function; a backslash escapes, or the character that is given",
        "LIKE('abc', 'a%') → true",
    ),
    declare_derived("ILIKE(s, pattern [, escape])", "LIKE in any case", "ILIKE('ABC', 'a%') → true"),
    declare_derived(
        "REGEXP_LIKE(s, pattern [, flags])",
        "TRUE if a regular expression matches a part of the text; the flag 'i' ignores case",
        "REGEXP_LIKE('ABC', 'b', 'i') → true",
        "REGEXP_MATCHES",
    ),
    declare_derived(
        "REGEXP_REPLACE(s, pattern, new [, flags])",
        "every match replaced; $1 is the first group; with the flags 'g' (every match) and 'i'",
        "REGEXP_REPLACE('a1b22', '[0-9]+', '#') → a#b#",
    ),
    declare_derived(
        "REGEXP_EXTRACT(s, pattern [, group])",
        "a group of the first match, by default the first one, or all if there is none; '' without a match",
        "REGEXP_EXTRACT('id 42', 'id ([0-9]+)') → 42",
    ),
    declare_derived(
        "REGEXP_SUBSTR(s, pattern)", "the first match; NULL without one", "REGEXP_SUBSTR('id 42', '[0-9]+') → 42"
    ),
    declare_derived(
        "REGEXP_EXTRACT_ALL(s, pattern [, group])",
        "an ARRAY of a group of each match, by default the first one, or the match if there is none",
        "REGEXP_EXTRACT_ALL('a1b22', '[a-z]([0-9]+)') → [1, 22]",
    ),
    native(
        "REGEXP_INSTR(s, pattern)",
        takes(INT, TEXT),
        "the position at which a regular expression first matches; 0 if it does not",
        "REGEXP_INSTR('id 42', '[0-9]') → 4",
        settings=1,
    ),
    native(
        "REGEXP_COUNT(s, pattern)",
        takes(INT, TEXT),
        "how often a regular expression matches",
        "REGEXP_COUNT('a1b22', '[0-9]+') → 2",
        settings=1,
    ),
    native(
        "ASCII(s)", takes(INT, TEXT), "the code point of the first character; 0 of an empty text", "ASCII('A') → 65"
    ),
    native("CHR(n)", takes(VARCHAR, WHOLE), "the character with the number n modulo 256", "CHR(65) → A", "CHAR"),
    native("SOUNDEX(s)", takes(VARCHAR, TEXT), "the four-character Soundex code of a text", "SOUNDEX('Robert') → R163"),
    declare_derived(
        "LEVENSHTEIN(a, b [, most])",
        "how many characters have to be inserted, deleted or changed to make b of a; −1 for more than the most",
        "LEVENSHTEIN('kitten', 'sitting') → 3",
    ),
    native(
        "LUHN_CHECK(s)",
        takes(BOOLEAN, TEXT),
        "TRUE if the last digit is the check digit of the others by Luhn's algorithm",
        "LUHN_CHECK('79927398713') → true",
    ),
    declare_derived(
        "MASK(s [, upper [, lower [, digit [, other]]]])",
        "the text with characters in the place of letters, digits and others; NULL leaves them",
        "MASK('aB-1') → xX-n",
    ),
    declare_derived("TYPEOF(x)", "the name that Spark has for the type", "TYPEOF(ARRAY('a')) → array<string>"),
)

INTERNAL = (
    Operation("levenshtein", 2, 2, takes(INT, TEXT), "the Levenshtein distance", settings=1),
    Operation("mask", 5, 5, takes(VARCHAR, TEXT), "the text with others in the place of characters", settings=1),
    Operation("regexp_extract_all", 3, 3, takes(VARCHAR, TEXT, TEXT, WHOLE), "the matches, an ARRAY", settings=1),
    Operation("split", 3, 3, takes(VARCHAR, TEXT, TEXT, WHOLE), "the parts between matches, an ARRAY", settings=1),
    Operation("reverse", 1, 1, takes(VARCHAR, TEXT), "the characters in reverse order"),
    Operation("trim", 2, 2, takes(VARCHAR, TEXT), "the text without some characters at both ends", settings=1),
    Operation("ltrim", 2, 2, takes(VARCHAR, TEXT), "the text without some characters at its start", settings=1),
    Operation("rtrim", 2, 2, takes(VARCHAR, TEXT), "the text without some characters at its end", settings=1),
    Operation("lpad", 3, 3, takes(VARCHAR, TEXT, WHOLE, TEXT), "a text filled up at its start", settings=1),
    Operation("rpad", 3, 3, takes(VARCHAR, TEXT, WHOLE, TEXT), "a text filled up at its end", settings=1),
    Operation(
        "replace", 3, 3, takes(VARCHAR, TEXT), "every occurrence of the second replaced by the third", settings=1
    ),
    Operation("concat_ws", 2, None, as_texts, "texts that are not NULL, with the first between", "never"),
    Operation("split_part", 3, 3, takes(VARCHAR, TEXT, TEXT, WHOLE), "a part between separators, or ''", settings=1),
    Operation("regexp_replace", 3, 3, takes(VARCHAR, TEXT), "every match of a pattern replaced", settings=1),
    Operation(
        "regexp_extract", 3, 3, takes(VARCHAR, TEXT, TEXT, WHOLE), "a group of the first match, or ''", settings=1
    ),
)
