"""The live page's web server, on loopback, for browsers on this machine only.

Pages of other sites can send requests to a loopback server. So the Host header must name this server (against
DNS rebinding, which makes a foreign name resolve to loopback), and requests from other origins are refused.
The page may not load anything from other servers.
"""

import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from analysis.live.board import LiveBoard
from analysis.pages import report
from analysis.pages.charting.chart_page import SCRIPTS, STYLES

LOOPBACK = "127.0.0.1"
SENT_TIMEOUT_S = 10
"""Time to send pending responses before the end: a report has megabytes, and the machine may be busy."""
STOP_TIMEOUT_S = SENT_TIMEOUT_S + 2.0
LOOK_S = 0.05
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_ASSETS = Path(__file__).parent / "assets"
_REPORT_ASSETS = Path(report.__file__).parent / "assets"  # the two pages share their style
_FILES = {
    "/": _ASSETS / "live.html",
    "/live.css": _ASSETS / "live.css",
    "/live.js": _ASSETS / "live.js",
    "/page.css": _REPORT_ASSETS / "page.css",
    "/theme.js": _REPORT_ASSETS / "theme.js",
    **{f"/{path.name}": path for path in (*STYLES, *SCRIPTS)},
}


class LocalRequestHandler:
    """Passes on requests from pages of this server; answers others with 403 or 405."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, as defined by ASGI."""
        if scope["type"] == "http":
            request = Request(scope)
            refused = self._refused(request)
            if refused is not None:
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refused(self, request: Request) -> Response | None:
        if request.headers.get("host") not in self._hosts:
            return PlainTextResponse("the Host header does not name this server", 403, HEADERS)
        origin = request.headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return PlainTextResponse("requests from other origins are refused", 403, HEADERS)
        if request.headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
            return PlainTextResponse("requests from other origins are refused", 403, HEADERS)
        return None


def application(board: LiveBoard, port: int, finished: Callable[[], Path | None]) -> ASGIApp:
    """Return the application with all pages. finished: returns the finished report, once there is one."""

    def file(path: Path) -> Callable[[Request], Awaitable[Response]]:
        async def answer(_request: Request) -> Response:
            return FileResponse(path, headers=HEADERS)

        return answer

    async def stream(_request: Request) -> Response:
        return StreamingResponse(_events(board), media_type="text/event-stream", headers=HEADERS)

    async def show_report(_request: Request) -> Response:
        path = finished()
        if path is None:
            return PlainTextResponse("there is no report yet", 404, HEADERS)
        own = {name: value for name, value in HEADERS.items() if name != "Content-Security-Policy"}
        return FileResponse(path, media_type="text/html", headers=own)  # it contains its policy

    routes = [Route(address, file(path)) for address, path in _FILES.items()]
    routes += [Route("/events", stream), Route("/report", show_report)]
    return LocalRequestHandler(Starlette(routes=routes), port)


async def _events(board: LiveBoard) -> AsyncIterator[str]:
    """Yield server-sent events (WHATWG HTML, 9.2)."""
    yield "retry: 1000\n\n"
    async for text in board.follow():
        yield f"data: {text}\n\n"


class PageServer:
    """Serves a board in a separate thread, until `stop`."""

    def __init__(self, board: LiveBoard) -> None:
        self.report: Path | None = None
        self._board = board
        self._socket = socket.create_server((LOOPBACK, 0))
        port = self._socket.getsockname()[1]
        self.url = f"http://{LOOPBACK}:{port}/"
        config = uvicorn.Config(
            application(board, port, lambda: self.report),
            log_level="critical",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=SENT_TIMEOUT_S,
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="page", daemon=True
        )

    def start(self) -> None:
        """Serve pages in a separate thread."""
        self._thread.start()

    def wait_until_left(self, timeout_s: float) -> None:
        """Wait until no page is connected: each page loads the report when it is notified."""
        deadline_s = time.monotonic() + timeout_s
        while self._board.pages and time.monotonic() < deadline_s:
            time.sleep(LOOK_S)

    def stop(self) -> None:
        """Disconnect pages and end the server. Idempotent."""
        self._board.end()
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)
        self._socket.close()
