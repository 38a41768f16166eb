"""A page in a real browser: opening it, and asking what it shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

CHARTS = (
    "accuracy-by-network",
    "accuracy-over-time",
    "q",
    "reach",
    "prediction",
    "updates",
    "activations",
    "loss",
)
AXE = Path(__file__).with_name("axe.min.js")
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


def show(browser: Any, address: str, dark: bool = False, phone: bool = False) -> None:
    """Open a page, its console and network log emptied before."""
    theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})
    if phone:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    else:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(address)


def complaints(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] != "INFO"]


def series(browser: Any, chart: str) -> list[dict[str, Any]]:
    """What a chart draws: names and data of its series, from the chart itself."""
    return browser.execute_script(
        "return echarts.getInstanceByDom(document.getElementById(arguments[0]))"
        ".getOption().series.map(({name, data}) => ({name, data}));",
        f"chart-{chart}",
    )


def painted(browser: Any, chart: str) -> int:
    """How many different colours a chart's canvas holds: 1 where nothing was drawn."""
    return browser.execute_script(
        """
        const canvas = document.querySelector(`#chart-${arguments[0]} canvas`);
        const pixels = new Uint32Array(canvas.getContext("2d")
          .getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        return new Set(pixels).size;
        """,
        chart,
    )


def text(browser: Any, element: str) -> str:
    return browser.find_element(By.ID, element).text


def choose(browser: Any, select: str, label: str) -> None:
    Select(browser.find_element(By.ID, select)).select_by_visible_text(label)


def serious(browser: Any) -> list[str]:
    """What axe finds that is serious or critical."""
    browser.execute_script(AXE.read_text())
    found = browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document).then(({violations}) => done(violations));"
    )
    return [
        f"{violation['id']}: {violation['help']} {violation['nodes'][0]['html'][:200]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]


def wait(browser: Any, condition: Callable[[], bool]) -> None:
    WebDriverWait(browser, 15, poll_frequency=0.1).until(lambda _: condition())
