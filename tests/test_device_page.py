"""docs/device.md as a reader follows it: every block in order, in one folder, with real tools."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "device.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"/\* (\S+) \*/\n")
TOOLS = ("gcc", "arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]


@pytest.mark.skipif(bool(MISSING), reason=f"NO {', '.join(MISSING)}: the page is not followed")
def test_the_page_ends_with_a_program_that_runs_on_the_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    names: dict[str, Any] = {}
    said = []
    for kind, code in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        named = FILE.match(code)
        if kind == "python":
            exec(code, names)
        elif kind == "sh":
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", code], stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, cwd=tmp_path, timeout=120,
                check=False, env=os.environ | {"PATH": path},
            )  # fmt: skip
            assert done.returncode == 0, done.stdout
            said.append(done.stdout)
        else:
            assert named is not None, f"a block of {kind} that no step of the test takes"
            (tmp_path / named[1]).write_text(code)
    fitted, diagnosed, exported, streamed, ran = said
    assert "Test accuracy" in fitted
    assert "The gradient reaches" in diagnosed
    assert "instructions a step" in exported
    assert "Score on the data" in exported
    first, second = streamed.splitlines()
    assert first.startswith("left ")
    assert second.startswith("right ")
    assert ran.rstrip().endswith("right")
