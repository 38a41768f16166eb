"""The report in a real browser, from real runs.

The page is compared with the run folders: the charts have drawn, nothing is asked from the network,
switching works, axe finds nothing serious, in both themes and on a phone.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from in_a_browser import CHARTS, choose, complaints, painted, series, serious, show, text, wait
from made_runs import write_run, write_study
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

import gradsieve as gs
from gradsieve.report import write_report
from gradsieve.training import Job, run_one

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks, each trained without and with the sieve, for real and for seconds."""
    folder = tmp_path_factory.mktemp("study")
    task = gs.tasks.temporal_order(length=20)
    base = gs.recipes.own_data().replaced(
        epochs=12, validate_every=1, iterations=10, sizes=(200, 100, 100), probe_every=2
    )
    for label, sieve in (("off", None), ("on", gs.Sieve("hold", q_range=(-0.2, 0.2)))):
        for network in range(2):
            sizes = task.inputs, 16, task.outputs, task.output
            net = gs.SRN.random(*sizes, start=base.start, seed=network)
            about = {"label": label, "network": network, "drawn_by": network}
            job = Job(task, base.replaced(sieve=sieve), network, about=about)
            run_one(net, job, folder / f"{label}-{network}")
    return folder


@pytest.fixture(scope="module")
def report(study: Path) -> Path:
    return write_report([study], study / "report.html", title="A small study")


def history(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def test_charts_are_drawn_without_a_complaint(browser: Any, report: Path) -> None:
    show(browser, report.as_uri())
    for chart in CHARTS:
        assert painted(browser, chart) > 5, chart
    assert complaints(browser) == []


def test_no_chart_is_painted_in_slices(browser: Any, report: Path) -> None:
    """A picture or a print would catch it half done."""
    show(browser, report.as_uri())
    for chart in CHARTS:
        slices = browser.execute_script(
            "return echarts.getInstanceByDom(document.getElementById(arguments[0])).getZr()"
            ".storage.getDisplayList().filter(({incremental}) => incremental).length;",
            f"chart-{chart}",
        )
        assert slices == 0, chart


def test_nothing_is_requested_but_the_file_itself(browser: Any, report: Path) -> None:
    show(browser, report.as_uri())
    time.sleep(0.5)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert asked[0] == report.as_uri()
    assert [url for url in asked[1:] if not url.startswith("data:")] == []


def test_the_values_shown_are_the_runs(browser: Any, report: Path, study: Path) -> None:
    show(browser, report.as_uri())
    for label in ("off", "on"):
        records = history(study / f"{label}-0")
        for chart, name in (("accuracy-over-time", "accuracy"), ("q", "slow_Q")):
            drawn = next(one for one in series(browser, chart) if one["name"] == label)
            assert [epoch for epoch, _ in drawn["data"]] == [r["epoch"] for r in records]
            values = [value for _, value in drawn["data"]]
            assert values == pytest.approx([record[name] for record in records], rel=1e-5)
    drawn = series(browser, "accuracy-by-network")
    assert [one["name"] for one in drawn] == ["off", "on", "constant guess 25.0 %"]
    for one in drawn[:-1]:
        for network, accuracy in one["data"]:
            result = json.loads((study / f"{one['name']}-{network}" / "result.json").read_text())
            assert accuracy == result["test_accuracy"]
    probes = [record["probe"] for record in history(study / "on-0") if record["probe"]]
    cells = series(browser, "reach")[0]["data"]
    for column, row, value in cells:
        assert value == pytest.approx(-probes[column]["slow_Q"][row], rel=1e-5)
    assert len(cells) == sum(len(probe["lags"]) for probe in probes)


def test_the_table_behind_a_chart_has_its_numbers(browser: Any, report: Path, study: Path) -> None:
    show(browser, report.as_uri())
    for chart in CHARTS:
        browser.execute_script(f"document.getElementById('details-{chart}').open = true")
    wait(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, "figure details table")) == 8)
    rows = browser.find_elements(By.CSS_SELECTOR, "#details-accuracy-over-time tbody tr")
    shown = [row.text.split(" ", 1) for row in rows]
    off, on = history(study / "off-0"), history(study / "on-0")
    assert shown == [
        [str(one["epoch"]), f"{100 * one['accuracy']:.1f} % {100 * other['accuracy']:.1f} %"]
        for one, other in zip(off, on, strict=True)
    ]


def test_switching_network_sieve_and_scale_redraws(browser: Any, report: Path, study: Path) -> None:
    show(browser, report.as_uri())
    choose(browser, "network", "1")
    choose(browser, "variant", "off")
    records = history(study / "off-1")
    drawn = series(browser, "loss")[0]["data"]
    assert [value for _, value in drawn] == pytest.approx([r["loss"] for r in records], rel=1e-5)
    assert f"{len(records) * 10} " not in text(browser, "summary-updates")
    browser.find_element(By.ID, "loss-log").click()
    assert browser.execute_script(
        "return echarts.getInstanceByDom(document.getElementById('chart-loss'))"
        ".getOption().yAxis.map(({type}) => type);"
    ) == ["log", "log"]
    assert {value for _, row, value in series(browser, "reach")[0]["data"] if row == 0} == {0}
    browser.find_element(By.ID, "raw").click()
    probes = [record["probe"] for record in records if record["probe"]]
    for column, row, value in series(browser, "reach")[0]["data"]:
        assert value == pytest.approx(probes[column]["log10_norm"][row], rel=1e-5)
    browser.find_element(By.ID, "prediction-log").click()
    assert complaints(browser) == []


def test_every_control_works_from_the_keyboard(browser: Any, report: Path) -> None:
    show(browser, report.as_uri())
    reached = set()
    for _ in range(60):
        browser.execute_cdp_cmd(
            "Input.dispatchKeyEvent",
            {"type": "keyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9},
        )
        reached.add(
            browser.execute_script(
                "const at = document.activeElement;"
                "return at.id || (at.parentElement && at.parentElement.id) || at.tagName;"
            )
        )
    controls = {"theme", "network", "variant", "raw", "prediction-log", "loss-log"}
    assert controls | {f"details-{chart}" for chart in CHARTS} <= reached


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_axe_finds_nothing_serious_and_nothing_sticks_out(
    browser: Any, report: Path, pictures: Path, dark: bool, phone: bool
) -> None:
    show(browser, report.as_uri(), dark, phone)
    browser.find_element(By.CSS_SELECTOR, "#details-q summary").click()
    assert serious(browser) == []
    assert browser.execute_script(
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    name = f"report-{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}.png"
    assert browser.get_screenshot_as_file(str(pictures / name))


def test_the_theme_follows_the_system_until_it_is_chosen(browser: Any, report: Path) -> None:
    def ground() -> str:
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    show(browser, report.as_uri(), dark=True)
    dark = ground()
    show(browser, report.as_uri())
    light = ground()
    assert dark != light
    button = browser.find_element(By.ID, "theme")
    button.click()
    assert ground() == dark
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert ground() == light
    browser.execute_script("localStorage.clear()")


def test_markup_in_a_run_shows_as_text_and_runs_nothing(browser: Any, tmp_path: Path) -> None:
    markup = "<img src=x onerror=document.title='broken'><script>document.title='broken'</script>"
    names = dict.fromkeys(("task", "label", "network"), markup)
    folder = write_run(tmp_path / "run", changed=names)
    with (folder / "history.jsonl").open("a") as file:
        file.write(json.dumps({"epoch": 61, "reasons": {markup: 5}, "kept": 1.0}) + "\n")
    other = write_run(tmp_path / "other", changed=names | {"network": "another"})
    show(browser, write_report([folder, other], tmp_path / "report.html", markup).as_uri())
    for chart in CHARTS:
        browser.execute_script(f"document.getElementById('details-{chart}').open = true")
    # Hovering makes the one piece of HTML that a chart writes itself: its tooltip.
    browser.execute_script(
        "for (const one of document.querySelectorAll('.chart')) for (let at = 0; at < 61; at += 20)"
        " echarts.getInstanceByDom(one).dispatchAction("
        "{type: 'showTip', seriesIndex: 0, dataIndex: Math.min(at, 59)});"
    )
    time.sleep(0.5)
    assert browser.title == markup
    assert markup in text(browser, "findings")
    assert browser.find_elements(By.CSS_SELECTOR, "img") == []
    assert complaints(browser) == []


def test_a_single_run_has_no_chart_of_one_dot_and_a_long_one_has_all(
    browser: Any, tmp_path: Path
) -> None:
    for epochs, hidden in ((2, {"prediction", "activations"}), (9, set())):
        folder = write_run(tmp_path / str(epochs), epochs=epochs)
        show(browser, write_report([folder], tmp_path / f"{epochs}.html").as_uri())
        shown = {
            chart
            for chart in CHARTS
            if browser.find_element(By.ID, f"figure-{chart}").is_displayed()
        }
        assert shown == set(CHARTS) - {"accuracy-by-network"} - hidden
        assert complaints(browser) == []


def test_a_phone_scrolls_wide_tables_inside_their_cards(browser: Any, report: Path) -> None:
    show(browser, report.as_uri(), phone=True)
    table = browser.find_element(By.CSS_SELECTOR, "#findings .table")
    inside, across = browser.execute_script(
        "const at = arguments[0]; at.scrollLeft = 1e6;"
        "return [at.getBoundingClientRect().right <= innerWidth, at.scrollLeft];",
        table,
    )
    assert inside
    assert across > 100


def test_no_words_of_a_chart_lie_over_others(browser: Any, report: Path) -> None:
    """Text as the library placed it: legends, axes' names and labels, the scale of the map."""
    for phone in (False, True):
        show(browser, report.as_uri(), phone=phone)
        for chart in CHARTS:
            boxes = browser.execute_script(
                """
                const chart = echarts.getInstanceByDom(document.getElementById(arguments[0]));
                return chart.getZr().storage.getDisplayList()
                  .filter((one) => one.type === "tspan" && !one.ignore && !one.invisible
                    && !(one.__clipPaths || []).length && one.style.opacity !== 0)
                  .map((one) => {
                    const box = one.getBoundingRect().clone();
                    box.applyTransform(one.getComputedTransform());
                    return [one.style.text, box.x, box.y, box.x + box.width, box.y + box.height];
                  });
                """,
                f"chart-{chart}",
            )
            assert boxes, chart
            for at, one in enumerate(boxes):
                for other in boxes[at + 1 :]:
                    across = min(one[3], other[3]) - max(one[1], other[1])
                    down = min(one[4], other[4]) - max(one[2], other[2])
                    assert across < 2 or down < 4, (chart, phone, one, other)


def test_two_experiments_can_be_switched(browser: Any, tmp_path: Path) -> None:
    write_study(tmp_path / "one", networks=2, epochs=5)
    for network in (7, 8):
        changed = {"task": "adding", "chance": 0.154}
        write_run(tmp_path / "two" / str(network), "full", network, epochs=5, changed=changed)
    output = tmp_path / "report.html"
    show(browser, write_report([tmp_path / "one", tmp_path / "two"], output).as_uri())
    choose(browser, "experiment", "adding, T = 100")
    drawn = [one["name"] for one in series(browser, "accuracy-by-network")]
    assert drawn == ["full", "constant guess 15.4 %"]
    network = Select(browser.find_element(By.ID, "network")).first_selected_option.text
    assert network == "7"
    assert complaints(browser) == []
