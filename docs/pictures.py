"""The pictures of reports in README and docs, taken of real ones by headless Chromium.

gradsieve demo -o runs/demo && python docs/reports.py docs/_build/gallery
python docs/pictures.py runs/demo/report.html docs/_build/gallery/reports
"""

from __future__ import annotations

import base64
import io
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

IMAGES = Path(__file__).parent / "images"
SHOTS = {  # name: width, theme, the elements from the top of the first to the bottom of the last
    "networks-light": (1180, "light", "#figure-accuracy-by-network", "#figure-accuracy-by-network"),
    "networks-dark": (1180, "dark", "#figure-accuracy-by-network", "#figure-accuracy-by-network"),
    "report-light": (1180, "light", "header", "#all-networks"),
    "report-dark": (1180, "dark", "header", "#all-networks"),
    "network-light": (1180, "light", "#one-network", "#figure-prediction"),
    "network-dark": (1180, "dark", "#one-network", "#figure-prediction"),
}
GALLERY = {  # a report of the gallery: the same, all of them light
    "two-ways": ("header", "#all-networks"),
    "one-run": ("#one-network", "#figure-prediction"),
    "vanished": ("header", "#figure-prediction"),
}


def open_browser(profile: str) -> Any:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def take(browser: Any, address: str, width: int, theme: str, first: str, last: str) -> bytes:
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    # As high as the page: a picture beyond the window would resize it and catch charts half drawn.
    size = {"width": width, "height": 6000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(address)
    time.sleep(3)
    top, bottom = browser.execute_script(
        "return [document.querySelector(arguments[0]).getBoundingClientRect().top,"
        " document.querySelector(arguments[1]).getBoundingClientRect().bottom];",
        first,
        last,
    )
    clip = {"x": 0, "y": max(0, top - 8), "width": width, "height": bottom - top + 16, "scale": 1}
    picture = browser.execute_cdp_cmd(
        "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
    )
    return base64.b64decode(picture["data"])


def main(report: Path, gallery: Path) -> None:
    shots = {name: (report, *shot) for name, shot in SHOTS.items()} | {
        f"gallery-{name}": (gallery / f"{name}.html", 1180, "light", *ends)
        for name, ends in GALLERY.items()
    }
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = open_browser(profile)
        try:
            for name, (page, *shot) in shots.items():
                picture = Image.open(io.BytesIO(take(browser, page.resolve().as_uri(), *shot)))
                # 256 colours tell a chart as well as millions, in a third of the bytes.
                picture.convert("RGB").quantize(256).save(IMAGES / f"{name}.png", optimize=True)
        finally:
            browser.quit()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
