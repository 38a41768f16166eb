"""The file: self-contained, small, and nothing in a run folder can become markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import write_run, write_study

from gradsieve.errors import GradsieveError
from gradsieve.report import write_report
from gradsieve.report.page import to_json

MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\"'"


class Elements(HTMLParser):
    """Tags with attributes, and the text of each script."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.cdata_elem == "script":
            self.scripts[-1] += data
        else:
            self.text.append(data)


def read(path: Path) -> Elements:
    return Elements(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Elements:
    folder = tmp_path_factory.mktemp("study")
    return read(write_report([write_study(folder, 3)], folder / "report.html"))


def test_nothing_in_the_file_is_fetched_from_elsewhere(page: Elements) -> None:
    for tag, attributes in page.tags:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            value = attributes.get(name) or ""
            assert value.startswith(("#", "data:")) or not value, (tag, name, value)


def test_the_policy_allows_exactly_the_scripts_that_are_there(page: Elements) -> None:
    policy = next(
        attributes["content"] or ""
        for tag, attributes in page.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    runs = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in page.scripts[1:]  # the first is the data, which no browser runs
    ]
    assert set(runs) == allowed
    assert len(allowed) == 2
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "unsafe" not in policy.split("style-src")[0]


def test_the_numbers_in_the_file_are_the_runs(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "full-4", "full", 4, epochs=20)
    data = json.loads(read(write_report([folder], tmp_path / "report.html")).scripts[0])
    (experiment,) = data["experiments"]
    (run,) = experiment["variants"][0]["runs"]
    lines = (folder / "history.jsonl").read_text().splitlines()
    assert run["history"]["loss"] == pytest.approx(
        [json.loads(line)["loss"] for line in lines], rel=1e-5
    )
    result = json.loads((folder / "result.json").read_text())
    assert run["accuracy"] == result["test_accuracy"]


def test_markup_in_names_settings_and_reasons_stays_text(tmp_path: Path) -> None:
    names = dict.fromkeys(("task", "label", "network", "engine"), MARKUP)
    folder = write_run(tmp_path / "run <b>&amp;", changed=names)
    record = {"epoch": 61, "reasons": {MARKUP: 3}, "kept": 1.0}
    with (folder / "history.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    hostile = read(write_report([folder], tmp_path / "report.html", title=MARKUP))
    write_run(tmp_path / "plain", changed={"task": "own"})
    plain = read(write_report([tmp_path / "plain"], tmp_path / "plain.html"))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    assert sum(MARKUP in text for text in hostile.text) >= 4
    assert MARKUP in json.dumps(json.loads(hostile.scripts[0]), ensure_ascii=False).replace(
        '\\"', '"'
    )


@given(st.text())
def test_json_for_a_page_reads_back_and_holds_no_markup(text: str) -> None:
    written = to_json({text: [text]})
    assert json.loads(written) == {text: [text]}
    assert not set("<>&") & set(written)


def test_ten_networks_both_ways_with_the_papers_2000_epochs_stay_under_4_mb(
    tmp_path: Path,
) -> None:
    # Written once and copied: the size is what matters here.
    first = write_run(tmp_path / "runs" / "full-0", epochs=2000)
    for index in range(1, 20):
        folder = tmp_path / "runs" / f"full-{index}"
        folder.mkdir()
        for name in ("history.jsonl", "result.json"):
            (folder / name).symlink_to(first / name)
        settings = json.loads((first / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**settings, "network": index}))
    written = write_report([tmp_path / "runs"], tmp_path / "report.html")
    assert written.stat().st_size < 4_000_000


def test_an_output_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", epochs=1)
    with pytest.raises(GradsieveError, match=re.escape(f"{tmp_path}: is a folder")):
        write_report([folder], tmp_path)
    with pytest.raises(GradsieveError, match="cannot be written"):
        write_report([folder], folder / "run.json" / "report.html")


def test_a_run_that_has_just_begun_has_a_report(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", epochs=1, finished=False)
    (folder / "history.jsonl").unlink()
    assert "Nothing measured yet" in "".join(
        read(write_report([folder], tmp_path / "report.html")).text
    )
