"""The live view: the report's page on loopback, which asks for news while a run goes on.

The server reads one folder and gives out two things, the page and its data, computed from that
folder; no address reaches a file. It listens on loopback only and refuses requests that name
another host, so that a web page elsewhere cannot read a run through a rebound domain name.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit

from gradsieve.errors import GradsieveError, InvalidArgument, InvalidFile
from gradsieve.report.page import Content, content, render_page
from gradsieve.report.runs import (
    HISTORY_FILE,
    RESULT_FILE,
    SETTINGS_FILE,
    RecordedRun,
    read_run,
    run_folders,
)

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8642
REST = 10  # times as long as a reading took, no other begins: the run needs the machine
Signature = tuple[tuple[str, int, int], ...]


@dataclass
class Watched:
    """A folder and its page, which is made anew only when a file has changed."""

    folder: Path
    title: str
    _signature: Signature | None = None
    _rest_until: float = 0.0
    _content: Content = field(default_factory=lambda: content([]))
    _answer: bytes = b""
    _page: bytes = b""
    _lock: Lock = field(default_factory=Lock)

    def page(self) -> bytes:
        with self._lock:
            self._refresh()
            if not self._page:
                page = render_page(self._content, self.title, live=True)
                self._page = page.encode("utf-8", "replace")
            return self._page

    def news(self) -> tuple[bytes, str]:
        """The data as JSON and a tag that changes with it."""
        with self._lock:
            self._refresh()
            return self._answer, f'"{hashlib.sha256(self._answer).hexdigest()[:20]}"'

    def _refresh(self) -> None:
        """Read the folder again if it has changed, but spend at most a tenth of the time on it."""
        started = time.monotonic()
        if started < self._rest_until:
            return
        signature = _signature(self.folder)
        if signature == self._signature:
            return
        runs = _readable_runs(self.folder)
        self._content = content(runs)
        self._page = b""
        self._answer = self._content.as_json(state=_state(runs)).encode("utf-8", "replace")
        self._signature = signature
        self._rest_until = started + REST * (time.monotonic() - started)


def _signature(folder: Path) -> Signature:
    """Name, size and time of every file that is read."""
    found = []
    for run in _run_folders(folder):
        for name in (SETTINGS_FILE, HISTORY_FILE, RESULT_FILE):
            try:
                status = (run / name).stat()
            except OSError:
                continue
            found.append((str(run / name), status.st_size, status.st_mtime_ns))
    return tuple(found)


def _run_folders(folder: Path) -> list[Path]:
    """Run folders that are there now; one may vanish while it is looked at."""
    try:
        return list(run_folders(folder))
    except OSError:
        return []


def _readable_runs(folder: Path) -> list[RecordedRun]:
    runs = []
    for path in _run_folders(folder):
        try:
            runs.append(read_run(path))
        except InvalidFile:  # begun this instant, its settings half written
            continue
    return runs


def _state(runs: list[RecordedRun]) -> str:
    if not runs:
        return "Live: waiting for a run to begin"
    going = sum(run.result is None for run in runs)
    epochs = sum(int(run.last("epoch") or 0) for run in runs)
    if len(runs) == 1:
        return f"Live: the run {'goes on' if going else 'has ended'}, {epochs} epochs"
    if not going:
        return f"Live: all {len(runs)} runs have ended, {epochs} epochs"
    return f"Live: {going} of {len(runs)} runs go on, {epochs} epochs so far"


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "gradsieve"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        if not self._from_here():
            self.send_error(HTTPStatus.FORBIDDEN, "only requests to this machine are answered")
            return
        try:
            path = urlsplit(self.path).path
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        if path == "/":
            self._send(self.server.watched.page(), "text/html; charset=utf-8", None)
        elif path == "/data.json":
            answer, tag = self.server.watched.news()
            if self.headers.get("If-None-Match") == tag:
                self.send_response(HTTPStatus.NOT_MODIFIED)
                self.end_headers()
                return
            self._send(answer, "application/json", tag)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _from_here(self) -> bool:
        """Whether the Host header names loopback: a rebound domain name does not."""
        host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
        return host in (LOOPBACK, "localhost")

    def _send(self, body: bytes, kind: str, tag: str | None) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Frame-Options", "DENY")
        if tag:
            self.send_header("ETag", tag)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a line every second would bury the terminal's other lines."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024  # connections that may wait to be taken

    def __init__(self, port: int, watched: Watched) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.watched = watched

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: a browser that goes away in the middle of an answer is no error."""


def serve(
    folder: Path,
    port: int = DEFAULT_PORT,
    title: str = "gradsieve live",
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the live view of a run, or of a folder of runs, until interrupted.

    Args:
        folder: it need not exist yet.
        port: on loopback; 0 takes a free one.
        title: the page's heading.
        ready: called with the address once it can be opened.
    """
    with open_server(folder, port, title) as server:
        if ready is not None:
            ready(f"http://{LOOPBACK}:{server.server_address[1]}/")
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return


def open_server(folder: Path, port: int, title: str = "gradsieve live") -> ThreadingHTTPServer:
    """The server, listening but not yet serving."""
    if not 0 <= port <= 65535:
        raise InvalidArgument(f"port is {port}; it may be 0 (any free one) … 65535")
    if folder.is_file():
        raise InvalidFile(f"{folder}: is a file; it must be a run folder or a folder of runs")
    try:
        return _Server(port, Watched(folder, title))
    except OSError as error:
        raise GradsieveError(
            f"port {port} on {LOOPBACK} cannot be used ({error.strerror}); choose another"
        ) from error
