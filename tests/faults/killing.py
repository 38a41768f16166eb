"""Programs that are killed at random moments, and what must be true afterwards.

The ordinary tests kill a few times; `GRADSIEVE_FAULTS=1000 pytest tests/faults` (`make faults`)
kills a thousand times in all.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

KILLS = int(os.environ.get("GRADSIEVE_FAULTS", "40"))  # in all tests of this folder together
PATIENCE = 300  # seconds for a program that nobody disturbs
ENDING = 10  # seconds within which a killed program's workers must be gone


def share(part: float) -> int:
    """So much of all kills."""
    return max(3, round(KILLS * part))


def started(command: Sequence[object], **more: object) -> subprocess.Popen[str]:
    words = [sys.executable, *map(str, command)]
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        words, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        **more,
    )  # fmt: skip


def finished(command: Sequence[object], **more: object) -> tuple[int, str]:
    """Exit code and words of a program that is left alone."""
    program = started(command, **more)
    said, _ = program.communicate(timeout=PATIENCE)
    return program.returncode, said


def alive(session: int) -> list[str]:
    """Processes of a program's session, by what they were started with."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if words[3] == str(session) and words[0] != "Z":
            found.append(f"{entry.name} {command}")
    return found


def descends(pid: int, ancestor: int) -> bool:
    """Whether a process was started by this one, or by one that was."""
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
        if pid == ancestor:
            return True
    return False


def killed(command: Sequence[object], times: int, seed: int, longest: float) -> int:
    """Start a program again and again, each time killing it by SIGKILL; how often that was.

    Only the program itself is killed: its workers must see to themselves. It is given between a
    twentieth and all of `longest` seconds.
    """
    moments, kills = random.Random(seed), 0
    for _ in range(times):
        program = started(command)
        try:
            program.wait(timeout=longest * moments.uniform(0.05, 1) ** 1.5)
        except subprocess.TimeoutExpired:
            os.kill(program.pid, signal.SIGKILL)
            kills += 1
        program.wait()
        if program.stdout is not None:
            program.stdout.close()
        until = time.monotonic() + ENDING
        while left := alive(program.pid):
            assert time.monotonic() < until, f"outlives the program: {left}"
            time.sleep(0.05)
    return kills


def leftovers(folder: Path) -> list[Path]:
    """What nobody has finished writing."""
    return [
        path for path in folder.rglob("*") if ".partial-" in path.name or ".old-" in path.name
    ] + list(folder.rglob("*-journal"))
