"""The cost of a long sequence: time of an update and memory, up to 20 000 steps.

Each length is measured in a process of its own, whose peak memory is then its own. The time is the
least of several updates, as CPU time of one thread; the plain update and the recommended one take
turns.
"""

from __future__ import annotations

import json
import resource
import time
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from gradsieve import recipes, tasks
from gradsieve.experiments.figures import BLUE, GREEN, RED, STYLE, save
from gradsieve.experiments.study import Places
from gradsieve.experiments.workers import worker_processes
from gradsieve.files import write_atomically
from gradsieve.network import SRN
from gradsieve.text import table
from gradsieve.training import Stepper

LENGTHS = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
UNITS, BATCH = 100, 10
UPDATES, FEWEST = 20_000, 3  # steps in time of all updates of a length; updates at least
WAYS = {"plain": "off", "recommended": "auto", "every update corrected": "hold"}


def measure(length: int) -> dict[str, Any]:
    """Milliseconds of an update by way, and the megabytes that the length needs beside its data."""
    task = tasks.adding(length)
    net = SRN.random(task.inputs, UNITS, task.outputs, task.output, start="orthogonal", seed=0)
    u, t = task.sample(BATCH, seed=1)
    before = peak_megabytes()
    recipe = recipes.recommended()
    steppers = {
        name: Stepper(net.copy(), recipe.replaced(sieve=sieve)) for name, sieve in WAYS.items()
    }
    memory, least = {}, dict.fromkeys(WAYS, float("inf"))
    for name in WAYS:
        steppers[name].step(u, t, None)
        memory[name] = peak_megabytes() - before
    for _ in range(max(FEWEST, UPDATES // length)):
        for name, stepper in steppers.items():
            began = time.process_time()
            stepper.step(u, t, None)
            least[name] = min(least[name], 1000 * (time.process_time() - began))
    return {
        "length": length,
        "data": u.nbytes / 2**20,
        "megabytes": memory["plain"],
        "megabytes_all": memory["every update corrected"],
        "milliseconds": least,
    }


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write(places: Places) -> None:
    """Measure the lengths that the folder lacks; write a table and a figure."""
    path = places.folder / "length-cost.json"
    found: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    for length in LENGTHS[len(found) :]:
        with worker_processes(1) as pool:
            found.append(pool.submit(measure, length).result())
        write_atomically(path, json.dumps(found))
    write_atomically(places.output / "length-cost.md", cost_table(found))
    save(draw(found), places.output / "length-cost.png")


def cost_table(found: list[dict[str, Any]]) -> str:
    """Time and memory by length."""
    head = ["T", *(f"ms, {name}" for name in WAYS), "µs a step, plain", "MB of inputs", "MB, plain",
            "MB, all three networks"]  # fmt: skip
    lines = [
        [str(one["length"]), *(f"{one['milliseconds'][name]:.2f}" for name in WAYS),
         f"{1000 * one['milliseconds']['plain'] / one['length']:.2f}", f"{one['data']:.1f}",
         f"{one['megabytes']:.0f}", f"{one['megabytes_all']:.0f}"]
        for one in found
    ]  # fmt: skip
    about = (
        f"An update of {UNITS} tanh units on minibatches of {BATCH} of the adding problem, float32,"
        " one core; the least CPU time of several. Memory is the growth of the process's peak by"
        " one update: of the plain network, and of three networks side by side.\n\n"
    )
    return about + table(head, lines)


def draw(found: list[dict[str, Any]]) -> Figure:
    """Time of an update and memory against length."""
    lengths = np.array([one["length"] for one in found])
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 3.2), layout="constrained")
        times, memory = figure.subplots(1, 2)
        for name, colour in zip(WAYS, (BLUE, GREEN, RED), strict=True):
            values = [one["milliseconds"][name] for one in found]
            times.plot(lengths, values, "o-", ms=3, color=colour, label=name)
        times.set(xscale="log", yscale="log", xlabel="T", title="CPU milliseconds of an update")
        times.legend()
        grown = np.maximum([one["megabytes"] for one in found], 0.1)  # a peak need not grow
        memory.plot(lengths, grown, "o-", ms=3, color=BLUE)
        memory.set(xscale="log", yscale="log", xlabel="T", title="megabytes of a plain update")
    return figure
