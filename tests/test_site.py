"""The documentation as a site: builds without a warning, its links lead somewhere, lines fit.

The course notebook is executed and the gallery's reports are trained while it is built.
"""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(path.stem for ends in ("*.md", "*.ipynb") for path in (ROOT / "docs").glob(ends))
LEFT = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")  # a link in Markdown
LOOSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")

pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    built = subprocess.run(
        [*command, ROOT / "docs", folder], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := given.get(name))}
        for name in ("href", "src"):
            if value := given.get(name):
                self.links.append(value)


def outside(link: str) -> bool:
    return bool(urlsplit(link).scheme or urlsplit(link).netloc)


def test_every_link_of_the_site_leads_to_a_file_and_an_anchor_of_it(site: Path) -> None:
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
        if path.parent.name != "reports"
    }
    dead = []
    for path, page in pages.items():
        for link in filter(lambda link: not outside(link), page.links):
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else None
            known = not parts.fragment or anchors is None or unquote(parts.fragment) in anchors
            if not target.exists() or not known:
                dead.append(f"{path.relative_to(site)}: {link}")
    assert not dead, "\n".join(dead)
    assert sum(len(page.links) for page in pages.values()) > 1000


@pytest.mark.parametrize("name", LOOSE)
def test_links_of_the_pages_outside_the_site_lead_to_files(name: str) -> None:
    links = LEFT.findall((ROOT / name).read_text(encoding="utf-8"))
    dead = [
        link for link in links if not outside(link) and not (ROOT / link.split("#")[0]).exists()
    ]
    assert not dead


def test_the_site_has_its_notebook_its_reports_and_its_pictures(site: Path) -> None:
    notebook = (site / "course.html").read_text(encoding="utf-8")
    assert notebook.count('class="cell_output') >= 8
    assert list((site / "_downloads").rglob("course.ipynb"))
    assert len(list((site / "reports").glob("*.html"))) == 3
    assert len(list((site / "_images").glob("*.svg"))) == 10
    assert (site / "api.html").stat().st_size > 20_000


def test_no_page_asks_another_host_for_what_it_shows(site: Path) -> None:
    shown = re.compile(r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(https?:[^"]+)')
    asked = [
        f"{path.name}: {found}"
        for path in site.glob("*.html")
        for found in shown.findall(path.read_text(encoding="utf-8"))
    ]
    assert not asked


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_code_and_tables_fit_at_1280_pixels_and_a_phone_scrolls_no_page_sideways(
    browser: Any, site: Path, theme: str
) -> None:
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    too_wide = []
    try:
        for width in (1280, 390):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            for name in PAGES:
                browser.get((site / f"{name}.html").as_uri())
                page, lines = browser.execute_script(
                    "return [document.documentElement.scrollWidth,"
                    " [...document.querySelectorAll('pre, .table-wrapper')]"
                    " .filter(one => one.scrollWidth > one.clientWidth + 1)"
                    " .map(one => one.innerText.slice(0, 200))]"
                )
                if page > width:
                    too_wide.append(f"{name} at {width}: {page} pixels")
                if width == 1280:
                    too_wide += [f"{name} at {width}: {line}" for line in lines]
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert not too_wide, "\n".join(too_wide)
