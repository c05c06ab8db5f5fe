"""The server of the page, in a thread of its own."""

import asyncio
import logging
import os
import threading
from contextlib import suppress
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import quote

from squallpy.base.addresses import Address
from squallpy.base.errors import SquallError
from squallpy.web.access import Access

if TYPE_CHECKING:
    import uvicorn

    from squallpy.web.app import Page
    from squallpy.web.protocol import Monitored

ADDRESS = Address("127.0.0.1", 8090)
"""The address of the page, unless another is given."""
OPTION = "--ui"


def read_address(text: str) -> Address:
    """Read [HOST]:PORT; SQ7003 for anything else."""
    if (address := Address.parse(text, "--ui-address")) is None:
        raise SquallError("SQ7003", f"--ui-address {text} is no address", hint="[HOST]:PORT, such as :8090")
    return address


class PageServer:
    """A server that listens at once; it answers when there is something to show.

    Raises:
        SquallError: SQ7005 if it cannot listen there, SQ8009 without starlette and uvicorn.
    """

    def __init__(self, address: Address = ADDRESS) -> None:
        for package in ("starlette", "uvicorn"):  # NB: they are imported when there is something to show
            if find_spec(package) is None:
                hint = "pip install 'squallpy[ui]'"
                raise SquallError("SQ8009", f"the page needs {package}, which is not installed", hint=hint)
        self._access = Access.to(address, os.environ)
        self._socket = address.listen(OPTION)
        self._page: Page | None = None
        host = address.host or "localhost"
        at = Address("localhost" if host in ("0.0.0.0", "::") else host, self._socket.getsockname()[1])
        self.url = f"http://{at}/{f'?token={quote(self._access.token)}' if self._access.token else ''}"
        self._server: uvicorn.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def show(self, monitored: "Monitored") -> None:
        """Show something, in place of what was shown before."""
        if self._page:
            self._page.show(monitored)
            return
        import uvicorn

        from squallpy.web.app import Page

        logging.getLogger("uvicorn").addHandler(logging.NullHandler())
        self._page = Page(monitored)
        config = uvicorn.Config(
            self._page.application(self._access),
            log_config=None, access_log=False, lifespan="off", ws="none", server_header=False, http="h11",
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="squallpy page", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        assert self._server
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[self._socket])

    def close(self) -> None:
        """Let all clients go, and listen no more."""
        if self._server and self._thread and self._page:
            self._server.should_exit = True
            if self._loop:
                with suppress(RuntimeError):  # NB: it may have ended by itself
                    self._loop.call_soon_threadsafe(self._page.close)
            self._thread.join(timeout=3)
        self._socket.close()

    def __enter__(self) -> "PageServer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
