"""`gradsieve report` and `gradsieve watch`, as a person calls them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from made_runs import write_run, write_study

COMMAND = (sys.executable, "-m", "gradsieve")


def call(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )


def test_report_writes_the_file_and_says_where(tmp_path: Path) -> None:
    write_study(tmp_path / "study", networks=2, epochs=3)
    output = tmp_path / "made" / "report.html"
    done = call("report", tmp_path / "study", "-o", output, "--title", "My <runs>")
    assert done.returncode == 0, done.stderr
    assert str(output) in done.stdout.replace("\n", "")
    assert "<title>My &lt;runs&gt;</title>" in output.read_text()


def test_a_mistake_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    for words in (("report", tmp_path / "nowhere"), ("watch", tmp_path, "--port", "99999")):
        done = call(*words)
        assert done.returncode == 2
        assert done.stderr.startswith("gradsieve: ")
        assert "Traceback" not in done.stderr


def test_watch_serves_until_interrupted_and_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "full-0", epochs=3)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    process = subprocess.Popen(
        [*COMMAND, "watch", str(folder), "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", said)
        assert found, said
        with urllib.request.urlopen(found[0] + "data.json", timeout=10) as answer:
            assert json.load(answer)["state"] == "Live: the run has ended, 3 epochs"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
