"""The cost table is measured, row by row, and says what it measured."""

from __future__ import annotations

from gradsieve.bench import module_costs
from gradsieve.bench.workload import Dimensions


def test_every_kind_of_module_has_a_row_with_its_ratios():
    costs = module_costs.measure(Dimensions("tanh", 4, 2, 5), turns=1)
    assert [row.module for row in costs] == list(module_costs.MODULES)
    for row in costs:
        assert min(*row.milliseconds.values(), *row.ratios) > 0
    lines = module_costs.table(costs).splitlines()
    assert len(lines) == len(costs) + 1
    assert f"{costs[0].ratios[1]:.2f}×" in lines[1]
