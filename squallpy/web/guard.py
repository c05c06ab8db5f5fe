"""The guard of the page, who lets those in that have access, with headers that shut others out.

A page of another site may let a browser ask at 127.0.0.1. It gets no answer to read: there is no CORS, and a name of
its own that leads here (DNS rebinding) is refused by the Host header.
"""

from starlette.datastructures import Headers, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from squallpy.web.access import Access

COOKIE = "squallpy"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """The application behind it, for those who may ask."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        refused = self._refuse(scope, headers)
        await (refused or self._app)(scope, receive, send_guarded)

    def _refuse(self, scope: Scope, headers: Headers) -> Response | None:
        """Return what somebody gets who may not ask; None for others."""
        access = self._access
        if not access.knows(headers.get("host", "")):
            return PlainTextResponse("this is not a name of the machine that runs squall\n", 421)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("all is read with GET\n", 405, {"Allow": "GET, HEAD"})
        if not access.token or scope["path"] == "/healthz":
            return None
        if given := QueryParams(scope["query_string"]).get("token"):
            if not access.admits(given) or scope["path"] != "/":
                return None if access.admits(given) else _unknown()
            response = RedirectResponse("/", 303)
            response.set_cookie(COOKIE, given, httponly=True, samesite="strict")
            return response
        kind, _, shown = headers.get("authorization", "").partition(" ")
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        return None if access.admits(shown.strip() if kind.lower() == "bearer" else cookie) else _unknown()


def _unknown() -> Response:
    hint = "open the address that squall has printed, or send the header Authorization: Bearer TOKEN"
    return PlainTextResponse(f"a token is needed: {hint}\n", 401, {"WWW-Authenticate": "Bearer"})
