"""`squall serve`: a session whose views others read, by Flight SQL, until Ctrl-C or SIGTERM."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from squallpy.base.addresses import Address
from squallpy.base.errors import SquallError
from squallpy.base.settings import parse_settings
from squallpy.terminal.interrupt import interruptible
from squallpy.terminal.stderr_lines import say


def read_address(text: str) -> Address:
    """Read [HOST]:PORT of --flight; SQ7003 for anything else."""
    if (address := Address.parse(text, "--flight")) is None:
        raise SquallError("SQ7003", f"--flight {text} is no address", hint="[HOST]:PORT, such as 127.0.0.1:31337")
    return address


def serve(
    script: Path | None, text: str | None, flight: Address, checkpoint: str | None, settings: Sequence[str]
) -> int:
    """Keep the views of a script, or of a checkpoint, fresh, and serve them; raises what ends the batches.

    Args:
        script: Its statements are executed first, from its folder; `text`: what it says, where it is no file.
    """
    from squallpy.flight import open_server
    from squallpy.frontend.source_text import read_script
    from squallpy.live.open_session import open_session
    from squallpy.terminal.served_session import serve_until_stopped
    from squallpy.web.monitoring import SERVICES

    if script is None and checkpoint is None:
        raise SquallError("SQ7004", "there is no session to serve", hint="name a script, or --checkpoint DIR")
    statements = text if text is not None else read_script(script) if script else ""
    base = script.parent if script else Path.cwd()
    with (
        interruptible(say) as interruption,
        closing(open_session(parse_settings(settings), base, checkpoint=checkpoint, services=SERVICES)) as session,
    ):
        [*session.execute(statements, str(script), maintains=True)]
        with closing(open_server(session, flight)) as server:
            say(f"Flight SQL at {server.url}" + (f", token {server.token}" if server.token else ""))
            return serve_until_stopped(session, interruption)
