"""Addresses to listen on.

Address.parse(":9464")   →   Address("", 9464)          Address.parse("m.jsonl")   →   None, a file
"""

import errno
import ipaddress
import re
import socket

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass

_TAKEN = (errno.EADDRINUSE, errno.EACCES, errno.EPERM)
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([A-Za-z0-9_.-]*)):(\d+)")


@dataclass(frozen=True, slots=True)
class Address:
    """A host, empty for all of this machine's addresses, and a port, 0 for any that is free."""

    host: str
    port: int

    @staticmethod
    def parse(text: str, option: str = "--metrics") -> "Address | None":
        """Read :PORT, HOST:PORT or [IPV6]:PORT; None for anything else. Raises SQ7003 for a port above 65535."""
        if (found := _ADDRESS.fullmatch(text)) is None:
            return None
        if int(found[3]) > 65535:
            raise SquallError("SQ7003", f"{option} {text} has no such port", hint="ports go up to 65535, 0 is any")
        return Address(found[1] or found[2] or "", int(found[3]))

    def listen(self, option: str) -> socket.socket:
        """Listen there; SQ7005, with the option that names the address, if that cannot be."""
        try:
            return self._listen()
        except (OSError, UnicodeError) as error:
            why = (getattr(error, "strerror", None) or str(error)).lower().partition(" (while")[0]
            hint = "name another port; 0 is any that is free"
            raise SquallError("SQ7005", f"{option} cannot listen on {self}: {why}", hint=hint) from None

    def _listen(self) -> socket.socket:
        """Listen on an address; on all addresses of both families where a host is not named."""
        if not self.host:
            try:
                return socket.create_server(("", self.port), family=socket.AF_INET6, dualstack_ipv6=True)
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno in _TAKEN:
                    raise
                return socket.create_server(("", self.port))  # NB: a machine without IPv6
        (family, *_, place), *_ = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        return socket.create_server(place[:2], family=family)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """True if a name or an address is that of this machine for itself."""
    return host.lower() == "localhost" or (is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback)


def is_address(host: str) -> bool:
    """True if a host is an IP address, an IPv6 one perhaps in brackets."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
