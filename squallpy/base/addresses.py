"""Addresses to listen on.

Address.parse(":9464")   →   Address("", 9464)          Address.parse("m.jsonl")   →   None, a file
"""

import re
from dataclasses import dataclass

from squallpy.base.errors import SquallError

_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([A-Za-z0-9_.-]*)):(\d+)")


@dataclass(frozen=True, slots=True)
class Address:
    """A host, empty for all of this machine's addresses, and a port, 0 for any that is free."""

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> "Address | None":
        """Read :PORT, HOST:PORT or [IPV6]:PORT; None for anything else. Raises SQ7003 for a port above 65535."""
        if (found := _ADDRESS.fullmatch(text)) is None:
            return None
        if int(found[3]) > 65535:
            raise SquallError("SQ7003", f"--metrics {text} has no such port", hint="ports go up to 65535, 0 is any")
        return Address(found[1] or found[2] or "", int(found[3]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
