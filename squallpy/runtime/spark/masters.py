"""Spark's masters: their names, and whether they can be reached.

with_attempts("local[2]")            →  "local[2,4]"
check_reachable("spark://nowhere:7077")  →  SQ8003, at once: Spark itself would try for a minute
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from squallpy.base.errors import SquallError

ATTEMPTS = 4  # attempts of a task before its batch fails, as on a cluster
_PATIENCE = 5  # seconds for a host to answer


def with_attempts(master: str) -> str:
    """Add task attempts to a local master, `local[2]` → `local[2,4]`; Spark would not retry its tasks otherwise."""
    if master == "local":
        return f"local[1,{ATTEMPTS}]"
    if master.startswith("local[") and master.endswith("]") and "," not in master:
        return f"{master[:-1]},{ATTEMPTS}]"
    return master


def check_reachable(master: str, environment: Mapping[str, str] = os.environ) -> None:
    """Raise SQ8003 if no address of a master answers; one without addresses is not checked."""
    if master == "yarn" and not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & environment.keys():
        hint = "set HADOOP_CONF_DIR to the folder of its site files"
        raise SquallError("SQ8003", "the address of YARN is not configured", hint=hint)
    failures = []
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), _PATIENCE).close()
            return
        except OSError as error:
            failures.append((error.strerror or str(error) or "no answer").lower())
    if failures:
        hint = "look whether it runs, or name another with --master"
        raise SquallError("SQ8003", f"no master answers at {master}: {failures[0]}", hint=hint)


def _addresses(master: str) -> Iterator[tuple[str, int]]:
    """List the addresses in spark://a:7077,b:7077 or k8s://https://host:443."""
    scheme, _, rest = master.partition("://")
    parts = {
        "spark": [f"spark://{part}" for part in rest.split(",")],
        "k8s": [rest if "://" in rest else f"https://{rest}"],
    }
    for part in parts.get(scheme, []):
        with suppress(ValueError):  # Spark reports an invalid port
            address = urlsplit(part)
            if address.hostname:
                yield address.hostname, address.port or {"http": 80, "https": 443}.get(address.scheme, 7077)
