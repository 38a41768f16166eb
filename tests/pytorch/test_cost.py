"""The cost table is measured, row by row, and says what it measured."""

from __future__ import annotations

from gradsieve.torch import cost


def test_every_kind_of_module_has_a_row_with_its_ratios():
    costs = cost.measure(hidden=4, batch=2, length=5, repeats=1)
    assert [row.module for row in costs] == list(cost.MODULES)
    for row in costs:
        assert min(row.plain, *row.ratios) > 0
    lines = cost.table(costs).splitlines()
    assert len(lines) == len(costs) + 1
    assert f"{costs[0].ratios[1]:.2f}×" in lines[1]
