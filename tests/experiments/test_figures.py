"""The figures of a study show every network, and the arms of all cells in one order."""

from __future__ import annotations

import numpy as np

from gradsieve.experiments.beyond import summarised
from gradsieve.experiments.figures import SUMMARY, accuracies, summary, updates

CELLS = {
    "adding, T=100": {"clipping": [0.2, 0.4], "clipping, hold": [0.9, 0.7, 0.8]},
    "adding, T=150": {
        "clipping": [0.2], "RMSprop": [0.3], "clipping, hold": [1.0], "start": [0.1],
    },
}  # fmt: skip
PAIRS = {"clipping, hold": "clipping"}


def test_the_arms_stand_in_the_order_that_is_asked_for_and_what_it_lacks_at_the_end() -> None:
    order = ("SGD", "clipping", "RMSprop", "clipping, hold")
    figure = accuracies(CELLS, dict.fromkeys(CELLS, 0.15), order, PAIRS)
    first, second = figure.axes[:2]
    named = [label.get_text() for label in first.get_yticklabels()]  # which all panels share
    assert named == ["clipping", "RMSprop", "start"]
    assert [axis.get_title() for axis in (first, second)] == list(CELLS)


def test_hold_stands_on_the_line_of_the_same_without_it_in_another_colour() -> None:
    figure = accuracies(CELLS, dict.fromkeys(CELLS, 0.15), ("clipping",), PAIRS)
    middles = figure.axes[0].lines[1::2][:2]  # of clipping, and of the same with hold
    heights = [float(np.mean(bar.get_ydata())) for bar in middles]
    assert heights == [-0.2, 0.2]
    assert middles[0].get_color() != middles[1].get_color()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["without hold", "with hold"]
    alone = accuracies({"adding, T=100": {"clipping": [0.2]}}, {"adding, T=100": 0.15})
    assert not alone.legends
    assert float(np.mean(alone.axes[0].lines[1].get_ydata())) == 0


def test_every_network_is_a_dot_and_the_middle_a_bar() -> None:
    figure = updates({"adding, T=100": {"clipping": [100, 200, 900]}})
    dots, bar = figure.axes[0].lines
    assert sorted(np.asarray(dots.get_xdata())) == [100, 200, 900]
    assert list(np.asarray(bar.get_xdata())) == [200, 200]


def test_the_summary_draws_every_arm_of_it_by_length_and_what_holds_unbroken() -> None:
    assert list(SUMMARY) == list(summarised("adding"))
    arms = {"clipping": {100: 0.2, 150: 0.1}, "advised, hold": {150: 1.0}}
    figure = summary({"adding": arms, "multiplication": {}}, {"adding": 0.15, "multiplication": 0})
    (axis, empty) = figure.axes
    drawn = dict(zip(SUMMARY, axis.lines[1:], strict=True))  # after that of a guess
    assert list(drawn["clipping"].get_xdata()) == [100, 150]
    assert list(drawn["advised, hold"].get_ydata()) == [1.0]
    assert not any(len(line.get_xdata()) for line in empty.lines[1:])
    broken = {name for name, line in drawn.items() if line.get_linestyle() != "-"}
    assert broken == {name for name in SUMMARY if "hold" not in name}
