"""The tables of a study say what was run, on how many networks, and against what."""

from __future__ import annotations

import pytest

from gradsieve.experiments.config import Cell
from gradsieve.report.paper_tables import (
    AT_RANDOM,
    WITHOUT_HOLD,
    ArmRows,
    Arms,
    accuracy_table,
    hold_table,
    summary_table,
)

CELL = Cell("adding", 100)


def arm(*accuracies: float, updates: int = 100) -> ArmRows:
    return ArmRows(
        {
            seed: {"test_accuracy": accuracy, "updates": updates, "kept": 1.0}
            for seed, accuracy in enumerate(accuracies)
        }
    )


ARMS = {
    "clip": arm(0.2, 0.2, 0.2, 0.2),
    "hold+clip": arm(0.5, 0.5, 0.5, 0.5),
    "stages+rms+clip": arm(0.9, 0.2, 0.9, 0.2),
    "hold+stages+rms+clip": arm(1.0, 1.0, 1.0, updates=50),
}


def table(against: tuple[str, ...], arms: Arms = ARMS) -> dict[str, dict[str, str]]:
    """By label and column."""
    head, _, *lines = accuracy_table({CELL: arms}, 4, against).splitlines()
    names, *rows = (
        [part.strip() for part in line.strip("|").split("|")] for line in [head, *lines]
    )
    return {row[2]: dict(zip(names, row, strict=True)) for row in rows}


def test_what_holds_is_compared_with_the_same_without_hold() -> None:
    rows = table(against=("clip", WITHOUT_HOLD))
    own = f"p against {WITHOUT_HOLD}: accuracy / updates"
    assert [rows[label][own] for label in ("clip", "stages+rms+clip")] == ["–", "–"]
    assert rows["hold+clip"][own] == "0.125 / 1.000"  # 2 of the 16 patterns of signs
    assert rows["hold+stages+rms+clip"][own] == "0.250 / 0.250"  # on the three that both have
    assert rows["stages+rms+clip"]["p against clip: accuracy / updates"] == "0.500 / 1.000"


def test_only_what_full_skips_is_compared_with_as_many_skipped_at_random() -> None:
    arms = ARMS | {"full+clip": arm(0.5, 0.6, 0.7, 0.8), "random+clip": arm(0.6, 0.7, 0.8, 0.9)}
    rows = table((AT_RANDOM,), arms)
    own = f"p against {AT_RANDOM}: accuracy / updates"
    assert rows["full+clip"][own] == "0.125 / 1.000"
    assert {row[own] for label, row in rows.items() if label != "full+clip"} == {"–"}


def test_what_hold_is_worth_stands_in_a_line_each_beside_the_same_without_it() -> None:
    arms = ARMS | {"hold+rms+clip": arm(0.995, 0.5)}
    assert hold_table({CELL: arms}).splitlines()[2:] == [
        "| adding | 100 | clip | 20.0%, 0 of 4, 100 | 20.0%, 0 of 4, 100 | "
        "**50.0%, 0 of 4, 100** | 0.125 / 1.000 |",
        "| adding | 100 | stages+rms+clip | 20.0%, 0 of 4, 100 | 55.0%, 0 of 4, 100 | "
        "**100.0%, 3 of 3, 50** | 0.250 / 0.250 |",
        "| adding | 100 | rms+clip | 20.0%, 0 of 4, 100 | – | **74.8%, 1 of 2, 100** | – |",
    ]


def test_the_summary_has_a_line_for_every_cell_and_a_dash_for_what_was_not_run() -> None:
    arms = {"clip": ARMS["clip"], "advised": ARMS["hold+stages+rms+clip"]}
    assert summary_table({CELL: arms}, ("off", "clip", "advised")).splitlines() == [
        "| task | T | off | clip | advised |",
        "|---|---|---|---|---|",
        "| adding | 100 | – | 20.0%, 0 of 4 | 100.0%, 3 of 3 |",
    ]


@pytest.mark.parametrize(
    ("label", "note"),
    [
        ("clip", ""),
        ("hold+stages+rms+clip", "**3 of 4 networks run**"),
    ],
)
def test_networks_that_were_not_run_are_said(label: str, note: str) -> None:
    row = table(against=("clip",))[label]
    assert row["note"] == note
    assert row["> 99 %"].endswith("of 3" if note else "of 4")


def test_a_mean_at_the_constant_guess_is_said_to_be_at_its_floor() -> None:
    said = accuracy_table({CELL: {"off": arm(0.15, 0.16)}}, 2, ("off",))
    assert "at its floor (a constant guess: 15.4%)" in said
