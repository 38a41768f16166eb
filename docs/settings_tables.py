"""The tables of settings in the documentation, written from the settings themselves."""

from __future__ import annotations

from pathlib import Path

from gradsieve.recipe import PARTS
from gradsieve.recipes import recommended
from gradsieve.settings import rules


def tables() -> str:
    """A table for each part of a recipe, a row for each of its settings."""
    recipe = recommended()
    lines = []
    for part, group in PARTS.items():
        lines += [f"## {part}", "", "| setting | default | recommended | may be | meaning |"]
        lines += ["|---|---|---|---|---|"]
        for name, rule in rules(group).items():
            default, chosen = (getattr(of, name) for of in (group(), getattr(recipe, part)))
            differs = "" if chosen == default else f"`{chosen!r}`"
            cells = (f"`{name}`", f"`{default!r}`", differs, str(rule), rule.help)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.md").write_text(tables(), encoding="utf-8")
