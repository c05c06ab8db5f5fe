"""Names and lines of printed functions."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from hashlib import sha256
from keyword import iskeyword

from squallpy.base.records import dataclass

_WIDTH = 108  # of a comment


class NotCompilable(Exception):
    """Something for which no code is printed; says what."""


@dataclass
class Names:
    """Distinct Python names; those that are `taken` are given to nothing."""

    taken: set[str] = field(default_factory=set)

    def __call__(self, text: str) -> str:
        """Make a name of a text: M_ORDERS → m_orders; if it is taken, m_orders_2."""
        plain = re.sub(r"\W", "_", text.lower(), flags=re.ASCII).strip("_") or "x"
        plain = f"x{plain}" if plain[0].isdigit() or iskeyword(plain) else plain
        name, number = plain, 1
        while name in self.taken:
            number += 1
            name = f"{plain}_{number}"
        self.taken.add(name)
        return name


@dataclass
class Lines:
    """The lines of a function under construction, indented."""

    lines: list[str] = field(default_factory=list)
    depth: int = 1
    texts: list[str] = field(default_factory=list)
    """Constants that the lines find by their address."""

    def __call__(self, line: str) -> None:
        """Append a line."""
        self.lines.append("    " * self.depth + line)

    def note(self, comment: str) -> None:
        """Append a comment, cut to a line."""
        text = " ".join(comment.split())
        self(f"# {text if len(text) <= _WIDTH else text[: _WIDTH - 1] + '…'}")

    def address(self, text: str) -> str:
        """Print the address of a constant text."""
        if text not in self.texts:
            self.texts.append(text)
        return f"address({_text_name(text)})"

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Append a head, and indent the lines under it."""
        self(head)
        self.depth += 1
        yield
        self.depth -= 1


def text_lines(texts: Iterable[str]) -> str:
    """Print the constants of a module."""
    return "".join(f"{_text_name(text)} = text_bytes({text!r})\n" for text in dict.fromkeys(texts))


def _text_name(text: str) -> str:
    """Name a constant by its letters, and by its hash, for others may have the same."""
    letters = re.sub(r"\W+", "_", text.upper(), flags=re.ASCII).strip("_")[:20]
    return f"TEXT_{letters}_{sha256(text.encode()).hexdigest()[:6].upper()}"


def constant(value: int) -> str:
    """Print a word: the least one is none of Python's literals for numba."""
    return "LEAST_WORD" if value == -(2**63) else str(value)
