"""A schema registry of the tests' own, which follows the published REST interface: none can be started here."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USER = "ann:geheim"


class SchemaRegistry:
    """A server with schemas in memory.

    Args:
        user: The name and the password that are asked for.
    """

    def __init__(self, user: str = "") -> None:
        self.schemas = list[dict[str, Any]]()
        self.subjects = dict[str, list[int]]()
        self.user, self.fails = user, 0
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(None)

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, body: Any) -> None:
                wanted = f"Basic {base64.b64encode(registry.user.encode()).decode()}"
                if registry.user and self.headers.get("Authorization") != wanted:
                    code, found = 401, {"error_code": 401, "message": "Unauthorized"}
                elif registry.fails:
                    registry.fails -= 1
                    code, found = 503, {"error_code": 50301, "message": "no leader"}
                else:
                    code, found = registry.answer(self.path, body)
                data = json.dumps(found).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        """Answer a request."""
        match path.strip("/").split("/"):
            case ["schemas", "ids", number]:
                if not 0 < int(number) <= len(self.schemas):
                    return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
                return 200, self.schemas[int(number) - 1]
            case ["subjects", subject, "versions"] if body:
                return 200, {"id": self.register(subject, **body)}
            case ["subjects", subject, "versions", version]:
                numbers = self.subjects.get(subject, [])
                if not numbers:
                    return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
                found = numbers[-1 if version == "latest" else int(version) - 1]
                return 200, {"subject": subject, "id": found, **self.schemas[found - 1]}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def register(self, subject: str, schema: str, **more: Any) -> int:
        """Return the number of a schema, which is new or not."""
        found = {"schema": schema, **more}
        if found not in self.schemas:
            self.schemas.append(found)
        number = self.schemas.index(found) + 1
        if number not in self.subjects.setdefault(subject, []):
            self.subjects[subject].append(number)
        return number

    def stop(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()
