"""The report as one HTML file: words and tables by Jinja2, charts by the embedded Apache ECharts.

The file opens from disk and asks the network for nothing. Content of run folders reaches the page
in two ways only: through Jinja2's autoescaping, and as JSON in an element that is not a
script to the browser. The content security policy allows exactly the scripts that are embedded,
by their hashes, so text that looks like markup stays text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from gradsieve.errors import GradsieveError
from gradsieve.files import write_atomically
from gradsieve.recipe import PARTS
from gradsieve.report.advice import SOLVED
from gradsieve.report.columns import MOST_POINTS, MOST_PROBES, columns
from gradsieve.report.comparison import Experiment, experiments, written
from gradsieve.report.finding import finding, percent
from gradsieve.report.recreate import recreate
from gradsieve.report.runs import RecordedRun, read_runs
from gradsieve.settings import rules
from gradsieve.training.corrections import corrections

HERE = Path(__file__).parent
SCRIPTS = (
    "colours.js",
    "numbers.js",
    "frame.js",
    "accuracy.js",
    "reach.js",
    "sieving.js",
    "inside.js",
    "charts.js",
    "tables.js",
    "page.js",
)
MOST_NUMBERS = 300_000  # of all runs together: about 2 MB of JSON
POINT_NUMBERS = 16  # in a record of the history, about
PROBE_NUMBERS = 102  # in a probe: two at each of 48 lags, and the rest

_environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE / "assets"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters["percent"] = percent


@dataclass(frozen=True)
class Content:
    """The content of a page: words as HTML, and numbers for the charts."""

    findings: str
    settings: str
    charts: dict[str, Any]

    def as_json(self, **more: object) -> str:
        return to_json(
            {"findings": self.findings, "settings": self.settings, "charts": self.charts, **more}
        )


def to_json(value: object) -> str:
    """JSON that cannot end the element it stands in, nor open a comment or a script there."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def write_report(
    run_folders: Sequence[Path], output: Path, title: str = "gradsieve report"
) -> Path:
    """Write one self-contained HTML file about these runs, atomically.

    Args:
        run_folders: run folders, or folders that hold them at any depth.
        output: the file to write.
        title: the page's heading.
    """
    if output.is_dir():
        raise GradsieveError(f"{output}: is a folder; the report is a file, such as report.html")
    write_atomically(output, render_page(content(read_runs(run_folders)), title))
    return output


def content(runs: Sequence[RecordedRun]) -> Content:
    """The page's words and numbers."""
    groups = experiments(runs)
    findings = _environment.get_template("findings.html.j2").render(
        pairs=[(group, finding(group)) for group in groups], solved=SOLVED
    )
    settings = _environment.get_template("settings.html.j2").render(
        runs=runs, recreated=_recreated(groups), **_settings(runs)
    )
    return Content(findings, settings, {"experiments": _numbers(groups, len(runs))})


def render_page(shown: Content, title: str, live: bool = False) -> str:
    """The whole page; a live one asks its server for news."""
    library = _script((HERE / "vendor" / "echarts.min.js").read_text(encoding="utf-8"))
    own = _script(
        "\n".join((HERE / "assets" / name).read_text(encoding="utf-8") for name in SCRIPTS)
    )
    return _environment.get_template("report.html.j2").render(
        title=title,
        live=live,
        policy=security_policy([library, own], live),
        style=Markup((HERE / "assets" / "style.css").read_text(encoding="utf-8")),
        library=Markup(library),
        script=Markup(own),
        findings=Markup(shown.findings),
        settings=Markup(shown.settings),
        charts=Markup(to_json(shown.charts)),
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def security_policy(scripts: Sequence[str], live: bool) -> str:
    """Only these scripts, no requests but a live page's own, no frames, no forms."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        f"connect-src {chr(39)}{'self' if live else 'none'}{chr(39)}; base-uri 'none'; "
        "form-action 'none'"
    )


def _script(text: str) -> str:
    """Our own or the library's code, which must not hold the end of its element."""
    if "</script" in text.lower():
        raise AssertionError("an embedded script contains </script")
    return text


def _numbers(groups: Sequence[Experiment], count: int) -> list[dict[str, Any]]:
    """The charts' data; the more runs, the fewer points each, so that the file stays small."""
    share = MOST_NUMBERS // (2 * max(count, 1))
    most_points = max(40, min(MOST_POINTS, share // POINT_NUMBERS))
    most_probes = max(12, min(MOST_PROBES, share // PROBE_NUMBERS))
    return [
        {
            "name": group.name,
            "chance": group.chance,
            "q_range": group.q_range,
            "variants": [
                {
                    "name": variant.name,
                    "sieved": variant.sieved,
                    "runs": [
                        {
                            "network": run.network,
                            "folder": run.folder.name,
                            "accuracy": run.accuracy,
                            "q_range": run.q_range,
                            "measure": run.measure,
                            "holds": run.holds,
                            "done": str(corrections([run.epochs])),
                            "finished": run.result is not None,
                            "history": columns(run, most_points, most_probes),
                        }
                        for run in variant.runs
                    ],
                }
                for variant in group.variants
            ],
        }
        for group in groups
    ]


def _recreated(groups: Sequence[Experiment]) -> list[tuple[str, str]]:
    """How to make the first run of each variant again."""
    variants = [(group.name, variant) for group in groups for variant in group.variants]
    return [
        (f"{name}: “{variant.name}”, network {variant.runs[0].network}", lines)
        for name, variant in variants
        if (lines := recreate(variant.runs[0])) is not None
    ]


def _settings(runs: Sequence[RecordedRun]) -> dict[str, Any]:
    """How the runs were trained: settings that all share, by part of the recipe, and others."""
    described = [_described(run) for run in runs]
    names = list(dict.fromkeys(name for one in described for name in one))
    same = [name for name in names if len({one.get(name) for one in described}) == 1]
    shared: dict[str, dict[str, str]] = {}
    for part, name in same:
        shared.setdefault(part, {})[name] = described[0][part, name]
    differing = [name for name in names if name not in same]
    rows = [
        (run.folder.name, [one.get(name, "–") for name in differing])
        for run, one in zip(runs, described, strict=True)
    ]
    return {"shared": shared, "differing": [name for _, name in differing], "rows": rows}


def _described(run: RecordedRun) -> dict[tuple[str, str], str]:
    """Every setting of a run by part and name; the start only where it drew the weights."""
    found = {("run", name): written(value) for name, value in run.about.items() if name != "format"}
    for part in PARTS if run.own_recipe else ("sieve",):
        group = getattr(run.recipe, part)
        if part == "start" and not run.drawn:
            found[part, part] = "initial.safetensors"
        elif group is None:
            found[part, part] = "off"
        else:
            found |= {(part, name): written(getattr(group, name)) for name in rules(type(group))}
    return found
