"""Schemas of a registry, by its REST interface: what a number in a message stands for, and numbers of new schemas.

registry.schema(7)                       GET /schemas/ids/7                           None: it has none
registry.latest("totals-value")          GET /subjects/totals-value/versions/latest
registry.register("totals-value", "…")   POST /subjects/totals-value/versions         the number
"""

import base64
import json
import ssl
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.secrets import resolve
from squallpy.runtime.connectors.kafka.brokers import PATIENCE, pause

_KIND = "application/vnd.schemaregistry.v1+json"
_PASSING = (408, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class SchemaRegistry:
    """A schema registry as options name it. Secrets are looked up at each request."""

    url: str
    user: str = ""
    authority: str = ""
    patience: float = PATIENCE

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "SchemaRegistry | None":
        """Read the options of a connector; None without a registry."""
        if "schema.registry.url" not in options:
            return None
        user = options.get("schema.registry.basic.auth.user.info", "")
        authority = options.get("schema.registry.ssl.ca.location", "")
        patience = parse_interval(options.get("connect_timeout", "")) or PATIENCE
        return cls(options["schema.registry.url"].rstrip("/"), user, authority, patience)

    def __str__(self) -> str:
        return f"the schema registry at {self.url}"

    def schema(self, number: int) -> str | None:
        """Return a schema of Avro, in which those that it refers to are defined; None if there is none of it."""
        return _schema(self, number)

    def latest(self, subject: str) -> str | None:
        """Return the latest schema of Avro of a subject; None if there is none."""
        found = self.ask(f"/subjects/{quote(subject, '')}/versions/latest")
        return None if found is None else _whole(self, found)

    def register(self, subject: str, schema: str) -> int:
        """Return the number of a schema, which is that of a subject from now on; SQ7005 if it is refused."""
        found = self.ask(f"/subjects/{quote(subject, '')}/versions", {"schema": schema})
        if found is None or "id" not in found:
            raise SquallError("SQ7005", f"{self} has no place for schemas: it knows no /subjects")
        return int(found["id"])

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a request, and wait for a registry that is away; None for what is not there."""
        until, tries = time.monotonic() + self.patience, 0
        while True:
            try:
                return self._ask(path, body)
            except HTTPError as error:
                said = _said(error)
                if error.code == 404:
                    return None
                if error.code in (409, 422):
                    hint = "rename the topic, or allow it: compatibility is a setting of the registry"
                    raise SquallError("SQ7005", f"{self} refuses the schema: {said}", hint=hint) from None
                if error.code not in _PASSING or time.monotonic() >= until:
                    raise SquallError("SQ8010", f"{self} says: {said}") from None
            except (URLError, OSError, ValueError) as error:
                if isinstance(error, ValueError) and not isinstance(error, OSError):
                    raise SquallError("SQ8010", f"{self} is none: {error}") from None
                if time.monotonic() >= until:
                    hint = "it may pass: run the same command again when it is there"
                    why = str(getattr(error, "reason", error)).lower()
                    raise SquallError("SQ8010", f"{self} cannot be reached: {why}", hint=hint) from None
            time.sleep(pause(tries))
            tries += 1

    def _ask(self, path: str, body: Mapping[str, Any] | None) -> Any:
        url = resolve(self.url)
        headers = {"Accept": _KIND} | ({"Content-Type": _KIND} if body else {})
        if self.user:
            headers["Authorization"] = f"Basic {base64.b64encode(resolve(self.user).encode()).decode()}"
        request = Request(url + path, json.dumps(body).encode() if body else None, headers)
        trusted = ssl.create_default_context(cafile=self.authority or None) if url.startswith("https") else None
        with urlopen(request, timeout=10, context=trusted) as answer:
            return json.load(answer)


@lru_cache(maxsize=1024)
def _known(registry: SchemaRegistry, number: int) -> str:
    found = registry.ask(f"/schemas/ids/{number}")
    whole = None if found is None else _whole(registry, found)
    if whole is None:
        raise LookupError(number)
    return whole


def _whole(registry: SchemaRegistry, found: Mapping[str, Any]) -> str | None:
    """Return a schema of Avro, in which those that it refers to are defined; None for one of another kind."""
    if found.get("schemaType", "AVRO") != "AVRO":
        return None
    return json.dumps(_inlined(json.loads(found["schema"]), _referred(registry, found)))


def _schema(registry: SchemaRegistry, number: int) -> str | None:
    try:
        return _known(registry, number)
    except LookupError:  # NB: it may be there later
        return None


def _referred(registry: SchemaRegistry, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schemas that one refers to, by name."""
    known = dict[str, Any]()
    for each in found.get("references", ()):
        other = registry.ask(f"/subjects/{quote(each['subject'], '')}/versions/{each['version']}")
        if other is not None:
            known[each["name"]] = _inlined(json.loads(other["schema"]), _referred(registry, other))
    return known


def _inlined(schema: Any, known: dict[str, Any]) -> Any:
    """Put definitions in the place of names that are used first."""
    if isinstance(schema, str):
        return known.pop(schema, schema)
    if isinstance(schema, list):
        return [_inlined(each, known) for each in schema]
    parts = {"type", "items", "values"} & {*schema}
    inner = {name: _inlined(schema[name], known) if name in parts else value for name, value in schema.items()}
    if "fields" in schema:
        inner["fields"] = [each | {"type": _inlined(each["type"], known)} for each in schema["fields"]]
    return inner


def _said(error: HTTPError) -> str:
    """Return what a registry says, in one line."""
    try:
        text = str(json.load(error)["message"])
    except (ValueError, LookupError, TypeError, OSError):
        text = f"HTTP {error.code} {error.reason}"
    return " ".join(text.split())[:300]
