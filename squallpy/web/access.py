"""Access to the page: the names by which this machine is asked for, and a token."""

import hmac
import secrets
import socket
from collections.abc import Mapping

from squallpy.base.addresses import Address, is_address, is_loopback
from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """The access to an address.

    Args:
        token: What has to be shown; empty: nothing.
    """

    address: Address
    token: str = ""

    @classmethod
    def to(cls, address: Address, environment: Mapping[str, str]) -> "Access":
        """Ask for a token where others than this machine can reach the address."""
        if is_loopback(address.host):
            return cls(address)
        return cls(address, environment.get("SQUALL_UI_TOKEN") or secrets.token_urlsafe(24))

    def knows(self, host: str) -> bool:
        """True if a Host header names this machine: by an address, or a name of its own."""
        name = _without_port(host).lower().rstrip(".")
        if is_loopback(self.address.host):
            return is_loopback(name) or name == self.address.host.lower()
        own = {"localhost", self.address.host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}
        return bool(name) and (name in own or is_address(name))

    def admits(self, shown: str) -> bool:
        """True if a token is the right one, or none is asked for."""
        return not self.token or hmac.compare_digest(shown.encode(), self.token.encode())


def _without_port(host: str) -> str:
    """Cut the port off: [::1]:8090 → [::1]"""
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
