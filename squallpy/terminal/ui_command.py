"""`squall ui`: the page of a session that is kept at a checkpoint, in this process or in the one that has it."""

from contextlib import closing
from pathlib import Path

from squallpy.base.addresses import Address
from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.terminal.interrupt import interruptible
from squallpy.terminal.stderr_lines import say


def show_page(checkpoint: str, address: Address | None) -> int:
    """Serve the page until Ctrl-C; where no process has the session, this one goes on with it. Returns the status.

    Raises SquallError: SQ7004 if there is no session.
    """
    from squallpy.live.open_session import open_session
    from squallpy.runtime.checkpoint.checkpoint import is_used
    from squallpy.terminal.served_session import serve_until_stopped
    from squallpy.web.monitoring import SERVICES, monitored
    from squallpy.web.page_server import ADDRESS, PageServer

    if not is_used(checkpoint):
        raise SquallError("SQ7004", f"there is no session at {checkpoint}", hint="squall --checkpoint DIR begins one")
    with (
        interruptible(say) as interruption,
        PageServer(address or ADDRESS) as page,
        closing(open_session(Settings(), Path.cwd(), checkpoint=checkpoint, services=SERVICES)) as session,
    ):
        page.show(monitored(session))
        say(f"the page is at {page.url}")
        return serve_until_stopped(session, interruption)
