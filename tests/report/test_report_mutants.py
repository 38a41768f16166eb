"""Damaged runs beside a whole one, and requests of any kind: the whole run is still shown."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import gradsieve as gs
from gradsieve.report import write_report
from gradsieve.report.live import Watched, open_server
from mutants import mutants, put, right_or_refused

FILES = {"run.json": 500, "history.jsonl": 500, "result.json": 250}


def made_run(folder: Path) -> Path:
    task = gs.tasks.temporal_order(length=10)
    net = gs.SRN.random(task.inputs, 3, task.outputs, output=task.output, seed=0)
    small = {"epochs": 3, "validate_every": 1, "iterations": 2, "batch": 3, "sizes": (10, 5, 5)}
    gs.train(net, task, folder=folder, **small)
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder of two runs, of which the second is to be damaged."""
    made_run(tmp_path / "runs" / "whole")
    shutil.copytree(tmp_path / "runs" / "whole", tmp_path / "runs" / "damaged")
    return tmp_path / "runs"


def shown(folder: Path) -> str:
    """What the live page says of a folder now."""
    return json.dumps(json.loads(Watched(folder, "test").news()[0]))


@pytest.mark.parametrize("name", FILES)
def test_mutants_of_a_run_leave_the_one_beside_it_in_the_live_view(runs, capfd, name) -> None:
    path = runs / "damaged" / name
    for content in mutants(path.read_bytes(), FILES[name]):
        put(path, content)
        assert right_or_refused(lambda: shown(runs), lambda said: "temporal_order" in said)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", FILES)
def test_mutants_of_a_run_are_reported_or_refused(runs, tmp_path, capfd, name) -> None:
    path, page = runs / "damaged" / name, tmp_path / "report.html"
    for content in mutants(path.read_bytes(), 40):
        put(path, content)
        right_or_refused(
            lambda: write_report([runs], page, "test"), lambda _: page.stat().st_size > 1000
        )
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("half", ["\\ud800", "\\udfff", "\\ud800\\ud800", "\\udc00\\ud800"])
def test_half_a_character_in_one_run_breaks_no_page(runs, tmp_path, half) -> None:
    for name in FILES:
        path = runs / "damaged" / name
        text = path.read_text().rstrip().removesuffix("}")
        path.write_text(f'{text}, "label": "{half}", "{half}": "{half}"}}\n')
    assert "temporal_order" in shown(runs)
    assert Watched(runs, "test").page()
    write_report([runs], tmp_path / "report.html", "test")


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_under_the_name_of_a_file_is_not_waited_for(runs, name) -> None:
    (runs / "damaged" / name).unlink()
    os.mkfifo(runs / "damaged" / name)
    assert right_or_refused(lambda: shown(runs), lambda said: "temporal_order" in said)


@pytest.fixture
def port(runs: Path) -> Iterator[int]:
    with open_server(runs, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def answer_to(port: int, request: bytes) -> bytes:
    """All that comes back until the server ends the connection, which it must do."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        got = b""
        while piece := connection.recv(1 << 20):
            got += piece
        return got


def test_mutants_of_a_request_get_an_answer_of_http_and_leave_the_server_up(port, capfd) -> None:
    whole = (
        f"GET /data.json HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nIf-None-Match: x\r\n\r\n".encode()
    )
    assert answer_to(port, whole).startswith(b"HTTP/1.0 200")
    for content in mutants(whole, 1500):
        try:
            got = answer_to(port, content)
        except ConnectionResetError:  # it was refused before all of it was read
            continue
        assert got[:1] in (b"", b"H", b"<", b"{")  # HTTP 0.9 has no status line
        assert b"Traceback" not in got
    assert answer_to(port, whole).startswith(b"HTTP/1.0 200")
    assert capfd.readouterr() == ("", "")


ODD = ["http://[", "//[", "http://[::1", "*", "/" + "a" * 60_000, "/%00", "/..%2f..%2fetc/passwd"]


@pytest.mark.parametrize("address", ODD, ids=range(len(ODD)))
def test_an_odd_address_gets_an_answer(port, address) -> None:
    got = answer_to(port, f"GET {address} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    assert got.startswith(b"HTTP/1.0 4")


def test_two_hundred_requests_at_once_are_all_answered(port) -> None:
    def ask(number: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/" if number % 4 == 0 else "/data.json")
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        assert body
        return answer.status

    began = time.monotonic()
    with ThreadPoolExecutor(200) as crowd:
        assert set(crowd.map(ask, range(200))) == {200}
    assert time.monotonic() - began < 40
