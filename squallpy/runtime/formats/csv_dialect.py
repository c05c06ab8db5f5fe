"""The dialect of a delimited text: the csv options of a relation."""

from collections.abc import Mapping

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.runtime.formats.text_encoding import codec_of

NAMED = {r"\t": "\t", "tab": "\t", r"\\": "\\", r"\0": "\0", r"\u0000": "\0"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The characters of a dialect, one each, empty for none.

    `null` is the text that means NULL outside quotes; `encoding` is Python's codec, empty where the file decides. A
    quote within quotes is doubled (RFC 4180), and nothing escapes unless `escape` says so. `compression` is a codec,
    empty where the name of a file tells.
    """

    delimiter: str = ","
    header: bool = False
    quote: str = '"'
    escape: str = ""
    null: str = ""
    encoding: str = ""
    compression: str = ""

    @staticmethod
    def of(options: Mapping[str, str]) -> "Dialect":
        """Read OPTIONS (...); SQ7002 for a value that is not one ASCII character."""
        marks = {name: _mark(name, options[name]) for name in ("delimiter", "quote", "escape") if name in options}
        if marks.get("delimiter") in ("", "\0"):
            raise SquallError("SQ7002", 'option "delimiter" cannot be empty', hint="one ASCII character, or \\t")
        marks = {name: "" if mark == "\0" else mark for name, mark in marks.items()}  # as Spark turns quotes off
        if marks.get("escape") and marks["escape"] == marks.get("quote", '"'):
            marks["escape"] = ""  # a doubled quote, as always
        codec = codec_of(options["encoding"]) if "encoding" in options else ""
        header = options.get("header", "false") == "true"
        null, compression = options.get("null", ""), options.get("compression", "")
        return Dialect(**marks, header=header, null=null, encoding=codec, compression=compression)


def _mark(name: str, text: str) -> str:
    mark = NAMED.get(text.lower(), text)
    if len(mark) > 1 or not mark.isascii() or mark in ("\n", "\r"):
        raise SquallError("SQ7002", f'option "{name}" cannot be {text!r}', hint="one ASCII character, or \\t")
    return mark
