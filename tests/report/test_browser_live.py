"""The live page in a real browser, from before a run begins until its server has gone."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_a_browser import complaints, series, serious, show, text, wait
from made_runs import write_run
from selenium.webdriver.common.by import By

import gradsieve as gs
from gradsieve.report.live import open_server

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    folder = tmp_path / "runs"
    with open_server(folder, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_the_live_page_follows_a_run_from_before_its_start_to_its_end(
    browser: Any, live: tuple[Path, str], pictures: Path
) -> None:
    folder, address = live
    show(browser, address)
    wait(browser, lambda: "waiting for a run to begin" in text(browser, "live-state"))
    task = gs.tasks.temporal_order(length=12)
    net = gs.SRN.random(task.inputs, 8, task.outputs, task.output, seed=0)
    halfway, go_on = threading.Event(), threading.Event()

    def pause(record: dict[str, Any]) -> None:
        if record["epoch"] == 3:
            halfway.set()
            go_on.wait(30)

    training = threading.Thread(
        target=gs.train,
        args=(net, task),
        kwargs={
            "epochs": 6,
            "validate_every": 1,
            "iterations": 5,
            "sizes": (50, 50, 50),
            "folder": folder / "full-0",
            "on_record": pause,
        },
    )
    training.start()
    assert halfway.wait(30)
    wait(browser, lambda: "the run goes on, 3 epochs" in text(browser, "live-state"))
    assert len(series(browser, "loss")[0]["data"]) == 3
    with (folder / "full-0" / "history.jsonl").open("a") as file:
        file.write("a corrupted line\n")
    browser.find_element(By.ID, "raw").click()
    go_on.set()
    training.join()
    wait(browser, lambda: "the run has ended, 6 epochs" in text(browser, "live-state"))
    losses = [
        json.loads(line)["loss"]
        for line in (folder / "full-0" / "history.jsonl").read_text().splitlines()
        if line.startswith("{")
    ]
    drawn = series(browser, "loss")[0]["data"]
    assert [value for _, value in drawn] == pytest.approx(losses, rel=1e-5)
    assert browser.find_element(By.ID, "raw").is_selected()
    assert "1 damaged history lines were left out" in text(browser, "findings")
    assert serious(browser) == []
    assert complaints(browser) == []
    browser.get_screenshot_as_file(str(pictures / "live.png"))


def test_the_live_page_says_when_its_server_has_gone(browser: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "full-0", epochs=3)
    with open_server(tmp_path, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        show(browser, f"http://127.0.0.1:{server.server_address[1]}/")
        wait(browser, lambda: "has ended" in text(browser, "live-state"))
        server.shutdown()
        thread.join()
    wait(browser, lambda: "the server does not answer" in text(browser, "live-state"))
    assert len(series(browser, "loss")[0]["data"]) == 3
