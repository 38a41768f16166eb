"""The live view over HTTP: what it answers, what it refuses, what it survives."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made_runs import epoch_record, write_run

from gradsieve.errors import GradsieveError, InvalidArgument, InvalidFile
from gradsieve.report.live import open_server


class Client:
    """Asks one server."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers=names)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def data(self) -> dict[str, Any]:
        status, _, body = self.get("/data.json")
        assert status == 200
        return json.loads(body)

    def epochs(self) -> list[int]:
        (experiment,) = self.data()["charts"]["experiments"]
        return experiment["variants"][0]["runs"][0]["history"]["epoch"]


def soon(seen: Callable[[], object], expected: object) -> None:
    """The server rests between readings, so what is new may show a moment later."""
    until = time.monotonic() + 10
    while seen() != expected and time.monotonic() < until:
        time.sleep(0.05)
    assert seen() == expected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "full-0"


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with open_server(folder, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield Client(server.server_address[1])
        server.shutdown()
        thread.join()


def test_it_waits_for_a_run_shows_it_growing_and_its_end(folder: Path, client: Client) -> None:
    assert client.data()["state"] == "Live: waiting for a run to begin"
    assert b"No run here yet" in client.get("/")[2]

    write_run(folder, epochs=3, finished=False)
    soon(lambda: client.data()["state"], "Live: the run goes on, 3 epochs")
    assert client.epochs() == [1, 2, 3]

    with (folder / "history.jsonl").open("a") as file:
        file.write('{"epoch": 4, "lo\x00ss"\n' + json.dumps(epoch_record(5, "full", 0)) + '\n{"ep')
    soon(client.epochs, [1, 2, 3, 5])

    (folder / "result.json").write_text('{"test_accuracy": 0.875}')
    soon(lambda: client.data()["state"], "Live: the run has ended, 5 epochs")
    assert "87.5 %" in client.data()["findings"]


def test_a_run_whose_settings_are_half_written_has_not_begun(folder: Path, client: Client) -> None:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"format": "gradsieve-ru')
    assert client.data()["state"] == "Live: waiting for a run to begin"


def test_without_news_there_is_no_answer_to_carry(folder: Path, client: Client) -> None:
    write_run(folder, epochs=3)
    _, headers, _ = client.get("/data.json")
    assert client.get("/data.json", If_None_Match=headers["ETag"])[0] == 304
    write_run(folder, epochs=4)
    soon(lambda: client.get("/data.json", If_None_Match=headers["ETag"])[0], 200)
    assert client.get("/data.json")[1]["ETag"] != headers["ETag"]


@pytest.mark.parametrize(
    "path",
    [
        "/run.json",
        "/../run.json",
        "/%2e%2e/run.json",
        "//etc/passwd",
        "/data.json/..",
        "/history.jsonl",
    ],
)
def test_no_address_reaches_a_file(folder: Path, client: Client, path: str) -> None:
    write_run(folder, epochs=1)
    assert client.get(path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_it_only_answers_get(client: Client, method: str) -> None:
    assert client.get("/data.json", method)[0] == 501


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_request_that_names_another_host_is_refused(client: Client, host: str) -> None:
    assert client.get("/data.json", Host=host)[0] == 403


def test_localhost_by_name_is_this_machine(client: Client) -> None:
    assert client.get("/", Host=f"localhost:{client.port}")[0] == 200


def test_it_listens_on_loopback_only(client: Client, folder: Path) -> None:
    with open_server(folder, 0) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"


def test_answers_are_kept_from_caches_frames_and_other_sites(client: Client) -> None:
    _, headers, page = client.get("/")
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert b"connect-src &#39;self&#39;" in page


def test_what_cannot_be_served_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="port is 70000"):
        open_server(tmp_path, 70000)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(GradsieveError, match=f"port {port} on 127.0.0.1 cannot be used"):
            open_server(tmp_path, port)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InvalidFile, match="is a file"):
        open_server(file, 0)
