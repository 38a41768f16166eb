"""Every code block of README and docs runs.

Blocks of one page run in its order and share their names, in an empty folder. `pycon` blocks must
print what they say they print. Lines of `sh` blocks that begin with `gradsieve` are commands: they
must parse, and they run, unless a comment before the block says why not:

    <!-- not run: takes a day -->
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from gradsieve.cli import PANELS, app

ROOT = Path(__file__).parents[1]
PAGES = [
    path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if path.exists()
]
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+?) -->\n+)?^```(?P<kind>\w+)[^\n]*\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    kind: str
    code: str
    line: int
    not_run: str | None

    def commands(self) -> list[list[str]]:
        joined = self.code.replace("\\\n", " ")
        lines = [line.removeprefix("$ ").strip() for line in joined.splitlines()]
        return [
            shlex.split(line, comments=True)[1:] for line in lines if line.startswith("gradsieve")
        ]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        line = text[: found.start("code")].count("\n") + 1
        yield Block(found["kind"], found["code"], line, found["reason"])


def run_python(block: Block, page: Path, names: dict[str, Any]) -> None:
    # Blank lines before the code make a traceback name the page's own line.
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)


def run_session(block: Block, page: Path, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.code, names, page.name, str(page), block.line)
    said = io.StringIO()
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.write, clear_globs=False)
    names.update(test.globs)
    assert not said.getvalue(), said.getvalue()


def check_command(words: list[str]) -> None:
    """The command and its options exist: parsed as when it is called, but not called."""
    command = typer.main.get_command(app)
    name, *arguments = words or ["--help"]
    if name.startswith("-"):
        return
    chosen = command.get_command(typer.Context(command), name)  # type: ignore[attr-defined]
    assert chosen is not None, f"gradsieve has no command {name!r}"
    if "--help" not in arguments:
        chosen.make_context(name, arguments)


def run_command(words: list[str]) -> None:
    outcome = CliRunner().invoke(app, words)
    assert outcome.exit_code == 0, (words, outcome.output, outcome.exception)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # A page's classes must be found where they say they are, as in a module.
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        for words in block.commands() if block.kind in ("sh", "console", "bash") else ():
            check_command(words)
            if block.not_run is None:
                run_command(words)
        if block.not_run is None and block.kind == "python":
            run_python(block, page, names)
        if block.not_run is None and block.kind == "pycon":
            run_session(block, page, names)


INLINE = re.compile(r"`([^`]+)`")


def named_in_sentences(page: Path) -> Iterator[list[str]]:
    """Commands and options that a page names between its blocks, as words."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    for span in INLINE.findall(text):
        if span.startswith(("gradsieve ", "--")) and "…" not in span:
            yield shlex.split(span.split("&&")[0])


def all_options() -> set[str]:
    command = typer.main.get_command(app)
    context = typer.Context(command)
    commands = [command, *(command.get_command(context, name) for name in PANELS)]  # type: ignore[attr-defined]
    return {option for one in commands for known in one.params for option in known.opts} | {
        "--help"
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_that_a_sentence_names_exists(page: Path) -> None:
    options = all_options()
    for words in named_in_sentences(page):
        if words[0] == "gradsieve" and not words[1].startswith("-"):
            assert words[1] in PANELS, words
        unknown = {word for word in words if word.startswith("--")} - options
        assert not unknown, f"{' '.join(words)}: no option {', '.join(unknown)}"


def test_the_blocks_are_found() -> None:
    kinds = {block.kind for page in PAGES for block in blocks(page)}
    assert {"python", "pycon", "sh"} <= kinds
    tour = list(blocks(ROOT / "docs" / "tour.md"))
    assert sum(len(block.commands()) for block in tour if block.kind == "sh") == 2


@pytest.mark.parametrize("words", [["trane"], ["train", "adding", "--no-such-option"]])
def test_a_command_that_does_not_exist_would_be_noticed(words: list[str]) -> None:
    with pytest.raises(Exception, match=r"no command 'trane'|No such option"):
        check_command(words)
