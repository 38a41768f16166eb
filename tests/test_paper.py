"""The paper for JOSS builds to PDF, cites what its bibliography has, and has JOSS's parts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAPER = Path(__file__).parents[1] / "paper"
PARTS = ("Summary", "Statement of need", "State of the field", "References")
TEXT = (PAPER / "paper.md").read_text(encoding="utf-8")


def test_it_has_the_parts_and_the_length_that_the_journal_asks_for():
    assert [part for part in PARTS if f"\n# {part}\n" not in TEXT] == []
    words = len(re.sub(r"^---.*?^---", "", TEXT, flags=re.DOTALL | re.MULTILINE).split())
    assert 250 <= words <= 1750


def test_every_reference_is_cited_and_every_citation_is_a_reference():
    entries = set(re.findall(r"^@\w+\{(\w+),", (PAPER / "paper.bib").read_text(), re.MULTILINE))
    assert set(re.findall(r"@([a-z]+\d{4})", TEXT)) == entries


@pytest.mark.skipif(
    shutil.which("pandoc") is None or shutil.which("chromium") is None,
    reason="NO PANDOC OR CHROMIUM: the paper is not built",
)
def test_it_builds_to_a_pdf_of_a_few_pages(tmp_path):
    command = ["sh", PAPER / "build.sh", tmp_path]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert built.returncode == 0, built.stdout + built.stderr
    pdf = (tmp_path / "paper.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 6
    page = (tmp_path / "paper.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert re.search(r'class="author">\s*The gradsieve developers', page)
    assert len(re.findall(r'class="csl-entry"', page)) > 5
