"""What the server refuses before anything else: other hosts, foreign pages, large bodies.

The server listens on 127.0.0.1 alone. A page of another site that is open in the same browser could still send requests
there; its name is in the header Origin, and a name that was made to point to 127.0.0.1 is in the header Host.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY = 64 * 1024
HOSTS = ("127.0.0.1", "localhost", "[::1]")

_HEADERS = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class Guard:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS.items()]
            await send(message)

        refused = _refusal(scope["method"], Headers(scope=scope))
        body = b""
        if refused is None:
            body, refused = await _whole_body(receive)
        if refused is not None:
            status, why = refused
            await JSONResponse({"error": why}, status)(scope, receive, send_guarded)
            return
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, receive_again, send_guarded)


def _refusal(method: str, headers: Headers) -> tuple[int, str] | None:
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name not in HOSTS:
        return 400, f"host: got {host[:80]!r}, expected 127.0.0.1 or localhost"
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != host:
        return 403, f"origin: got {origin[:80]!r}, expected this page's own"
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return 403, "origin: got a request from another site, expected one from this page"
    if method not in ("GET", "HEAD", "POST"):
        return 405, f"method: got {method[:20]}, expected GET or POST"
    if method == "POST" and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return 415, "body: expected application/json"
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MOST_BODY:
        return 413, f"body: got {length[:20]} bytes, expected {MOST_BODY} at most"
    return None


async def _whole_body(receive: Receive) -> tuple[bytes, tuple[int, str] | None]:
    """Reads a body, whatever length it was said to have."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MOST_BODY:
            return b"", (413, f"body: got more than {MOST_BODY} bytes")
        if not message.get("more_body", False):
            return body, None
