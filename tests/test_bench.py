"""The benchmark: its contenders do the same work, and its numbers are what they say."""

import json
import math

import pytest

import gradsieve as gs
from gradsieve.bench import measure
from gradsieve.bench.measure import check_agreement
from gradsieve.bench.own_steps import own_steps
from gradsieve.bench.timing import Spread, Timing, take_turns
from gradsieve.bench.torch_steps import torch_steps
from gradsieve.bench.workload import make_workload


@pytest.fixture(scope="module")
def workload():
    return make_workload(length=12, hidden=20, batch=5)


def test_every_contender_finds_the_dS_of_the_reference(workload):
    steps = own_steps(workload) | torch_steps(workload)
    found = {name: [step() for _ in range(3)] for name, step in steps.items()}
    for kind in ("frozen", "full"):
        truth = found[f"reference {kind}"]
        assert all(map(math.isfinite, truth))
        assert len(set(truth)) == 3  # momentum builds up: each update differs from the last
        for name in (f"gradsieve {kind}", f"PyTorch {kind}"):
            assert found[name] == pytest.approx(truth, rel=1e-2), name


def test_jax_finds_the_dS_of_the_reference(workload):
    pytest.importorskip("jax", reason="JAX is in the extra `bench` only")
    from gradsieve.bench.jax_steps import jax_steps

    check_agreement(own_steps(workload) | jax_steps(workload))


def test_a_contender_that_does_other_work_is_refused(workload):
    with pytest.raises(gs.GradsieveError, match=r"other full finds dS/\(2S\) = 1.0, the reference"):
        check_agreement(own_steps(workload) | {"other full": lambda: 1.0})


def test_ratios_are_formed_turn_by_turn():
    slow, fast = Timing((2.0, 9.0, 4.0)), Timing((1.0, 3.0, 1.0))
    assert slow.ratio_to(fast) == Spread(3.0, 2.0, 4.0)
    assert fast.share_of([1.0, 1.0, 4.0], 0.5) == Spread(1 / 6, 1 / 8, 1 / 2)
    assert f"{Spread(0.5, 0.25, 0.75):.0%}" == "50% (25% … 75%)"


def test_a_turn_takes_the_fastest_call_of_each_step():
    ticks = iter([0.0, 5.0, 10.0, 12.0, 20.0, 27.0])  # calls of 5, 2 and 7 seconds
    taken = take_turns({"step": lambda: None}, 1, 13.0, clock=lambda: next(ticks))
    assert taken == {"step": Timing((2.0,))}


def test_a_run_measures_every_share_and_can_be_stored():
    found = measure(turns=2, seconds=0.002, grow=False)
    stored = json.loads(json.dumps(found.as_dict()))
    assert {"gradsieve plain", "kernel full", "reference frozen", "PyTorch full"} <= set(
        stored["timings"]
    )
    assert 0 < found.plain_share.median < 1
    assert 0 < found.validation_share.median < 1
    assert 3 < found.arrays < 6
    assert stored["timings"]["gradsieve full"]["ratio"]["median"] > 1
