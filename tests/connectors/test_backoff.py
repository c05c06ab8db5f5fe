"""What of the errors of object stores may pass, as their clients put it."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.runtime.connectors.backoff import is_store_away

GET = "Generic S3 error \x1b[31m↳\x1b[0m Error performing GET http://127.0.0.1:9/lake/t/x in 1ms"
PASSES = {
    f"{GET} - HTTP error \x1b[31m↳\x1b[0m error sending request \x1b[31m↳\x1b[0m tcp connect error": True,
    f"{GET} - HTTP error ↳ request or response body error ↳ unexpected EOF": True,
    f"{GET} - HTTP error ↳ error decoding response body ↳ end of file before message length reached": True,
    f"{GET} - HTTP error ↳ builder error ↳ relative URL without a base": False,
    f"{GET} - Server returned non-2xx status code \x1b[31m↳\x1b[0m 503 Service Unavailable": True,
    f"{GET} - Server returned non-2xx status code: 429 Too Many Requests": True,
    f"{GET} - Server returned non-2xx status code \x1b[31m↳\x1b[0m 403 Forbidden": False,
    f"{GET} - HTTP error: error sending request: invalid peer certificate: UnknownIssuer": False,
    "When reading information for key 'k': AWS Error NETWORK_CONNECTION during HeadObject: curlCode: 7": True,
    "When reading information for key 'k': AWS Error UNKNOWN: curlCode: 18, Transferred a partial file": True,
    "When reading information for key 'k': AWS Error NETWORK_CONNECTION: curlCode: 60, SSL certificate problem": False,
    "When reading information for key 'k': AWS Error ACCESS_DENIED during HeadObject": False,
    "[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device": False,
}


@pytest.mark.parametrize("said", PASSES)
def test_errors_of_object_stores(said: str) -> None:
    assert is_store_away(OSError(said)) == PASSES[said]
    assert not is_store_away(SquallError("SQ8010", said))  # NB: that was waited for
