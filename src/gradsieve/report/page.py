"""The report as one HTML file: words and tables by Jinja2, charts by the embedded Apache ECharts.

The file opens from disk and asks the network for nothing. What comes from run folders reaches the
page in two ways only: through Jinja2's autoescaping, and as JSON in an element that is not a
script to the browser. The content security policy allows exactly the scripts that are embedded,
by their hashes, so text that looks like markup stays text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from gradsieve.errors import GradsieveError
from gradsieve.files import write_atomically
from gradsieve.report.columns import MOST_POINTS, MOST_PROBES, columns
from gradsieve.report.comparison import Experiment, experiments
from gradsieve.report.recreate import recreate
from gradsieve.report.runs import Run, finite, read_runs
from gradsieve.report.verdict import percent, verdict

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
PROBE_NUMBERS = 54  # in a probe: 48 lags and the rest

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
    """What a page shows of the runs: words as HTML, and numbers for the charts."""

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


def content(runs: Sequence[Run]) -> Content:
    groups = experiments(runs)
    verdicts = [verdict(group) for group in groups]
    findings = _environment.get_template("findings.html.j2").render(
        pairs=list(zip(groups, verdicts, strict=True)), total=_total, ended=_ended
    )
    shared, differing = _settings(runs)
    settings = _environment.get_template("settings.html.j2").render(
        runs=runs, same=shared, differing=differing, setting=_setting, recipes=_recipes(groups)
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
    """Our own or the library's code: it must not hold what would end its element."""
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


def _recipes(groups: Sequence[Experiment]) -> list[tuple[str, str]]:
    """How to make the first run of each variant again."""
    variants = [(group.name, variant) for group in groups for variant in group.variants]
    return [
        (f"{name}: “{variant.name}”, network {variant.runs[0].network}", recipe)
        for name, variant in variants
        if (recipe := recreate(variant.runs[0])) is not None
    ]


def _total(runs: Sequence[Run], name: str) -> float:
    return sum(value for run in runs for value in run.column(name) if value is not None)


def _ended(runs: Sequence[Run], name: str) -> float:
    """The sum over runs of a number that counts from the beginning of each."""
    return sum(run.last(name) or 0 for run in runs)


def _settings(runs: Sequence[Run]) -> tuple[dict[str, str], list[str]]:
    """What all runs share, and the names of what they do not."""
    names = list(dict.fromkeys(name for run in runs for name in run.settings))
    values = {name: {_setting(run, name) for run in runs} for name in names}
    shared = {name: found.pop() for name, found in values.items() if len(found) == 1}
    return shared, [name for name in names if name not in shared]


def _setting(run: Run, name: str) -> str:
    """A setting as a person writes it."""
    value = run.settings.get(name)
    if value is None:
        return "none"
    if isinstance(value, bool | str):
        return str(value)
    if finite(value) is not None:
        return repr(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {json.dumps(value[key], ensure_ascii=False)}" for key in value)
    return json.dumps(value, ensure_ascii=False)
