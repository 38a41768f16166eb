"""The tables of a study say what was run, on how many networks, and against what."""

from __future__ import annotations

import pytest

from gradsieve.experiments.config import Condition
from gradsieve.experiments.search import Found
from gradsieve.experiments.tables import (
    ArmRows,
    Arms,
    accuracy_table,
    hold_table,
    search_table,
    summary_table,
)

CELL = Condition("adding", 100)
PAIRS = {"clipping, hold": "clipping", "curriculum, hold": "curriculum"}
OPPONENTS = {"clipping": lambda _: "clipping", "the same without hold": PAIRS.get}


def arm(*accuracies: float, updates: int = 100) -> ArmRows:
    return ArmRows(
        {
            seed: {"test_accuracy": accuracy, "updates": updates, "kept": 1.0}
            for seed, accuracy in enumerate(accuracies)
        }
    )


ARMS = {
    "clipping": arm(0.2, 0.2, 0.2, 0.2),
    "clipping, hold": arm(0.5, 0.5, 0.5, 0.5),
    "curriculum": arm(0.9, 0.2, 0.9, 0.2),
    "curriculum, hold": arm(1.0, 1.0, 1.0, updates=50),
}


def table(arms: Arms = ARMS) -> dict[str, dict[str, str]]:
    """By arm and column."""
    head, _, *lines = accuracy_table({CELL: arms}, 4, OPPONENTS, {}).splitlines()
    names, *rows = (
        [part.strip() for part in line.strip("|").split("|")] for line in [head, *lines]
    )
    return {row[2]: dict(zip(names, row, strict=True)) for row in rows}


def test_what_holds_is_compared_with_the_same_without_hold() -> None:
    rows = table()
    own = "p against the same without hold: accuracy / updates"
    assert [rows[label][own] for label in ("clipping", "curriculum")] == ["–", "–"]
    assert rows["clipping, hold"][own] == "0.125 / 1.000"  # 2 of the 16 patterns of signs
    assert rows["curriculum, hold"][own] == "0.250 / 0.250"  # on the three that both have
    assert rows["curriculum"]["p against clipping: accuracy / updates"] == "0.500 / 1.000"


def test_what_hold_is_worth_stands_in_a_line_each_beside_the_same_without_it() -> None:
    arms = ARMS | {"RMSprop, hold": arm(0.995, 0.5)}
    pairs = PAIRS | {"RMSprop, hold": "RMSprop"}
    assert hold_table({CELL: arms}, pairs, "clipping").splitlines()[2:] == [
        "| adding | 100 | clipping | 20.0%, 0 of 4, 100 | 20.0%, 0 of 4, 100 | "
        "**50.0%, 0 of 4, 100** | 0.125 / 1.000 |",
        "| adding | 100 | curriculum | 20.0%, 0 of 4, 100 | 55.0%, 0 of 4, 100 | "
        "**100.0%, 3 of 3, 50** | 0.250 / 0.250 |",
        "| adding | 100 | RMSprop | 20.0%, 0 of 4, 100 | – | **74.8%, 1 of 2, 100** | – |",
    ]


def test_the_summary_has_a_line_for_every_cell_and_a_dash_for_what_was_not_run() -> None:
    arms = {"clipping": ARMS["clipping"], "advised": ARMS["curriculum, hold"]}
    assert summary_table({CELL: arms}, ("SGD", "clipping", "advised")).splitlines() == [
        "| task | T | SGD | clipping | advised |",
        "|---|---|---|---|---|",
        "| adding | 100 | – | 20.0%, 0 of 4 | 100.0%, 3 of 3 |",
    ]


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("clipping", ""),
        ("curriculum, hold", "**3 of 4 networks run**"),
    ],
)
def test_networks_that_were_not_run_are_said(name: str, note: str) -> None:
    row = table()[name]
    assert row["note"] == note
    assert row["> 99 %"].endswith("of 3" if note else "of 4")


def test_a_mean_at_the_constant_guess_is_said_to_be_at_its_floor() -> None:
    said = accuracy_table({CELL: {"SGD": arm(0.15, 0.16)}}, 2, {}, {})
    assert "at its floor (a constant guess: 15.4%)" in said


@pytest.mark.parametrize(
    ("accuracies", "by_chance"), [((0.16, 0.17), True), ((0.16, 0.19), False), ((0.5, 0.51), False)]
)
def test_a_search_whose_candidates_all_guess_is_said_to_have_chosen_by_chance(
    accuracies: tuple[float, float], by_chance: bool
) -> None:
    tried = tuple(({"clip": clip}, mean) for clip, mean in enumerate(accuracies, start=1))
    known = {(CELL, "clipping"): ("clipping", Found(tried, {"clip": 2}, guess=0.154))}
    said = accuracy_table({CELL: {"clipping": ARMS["clipping"]}}, 4, {}, known)
    assert ("chosen by chance" in said) == by_chance
    line = search_table(known).splitlines()[-1]
    assert line.endswith("| **clip 2**, by chance |" if by_chance else "| **clip 2** |")
