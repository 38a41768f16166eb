"""One recurrent layer of the kernel behind autograd: gradcheck, opcheck, compiled, transformed."""

from __future__ import annotations

import pytest
import torch

from gradsieve.errors import InvalidArgument
from gradsieve.torch.fast import layer as fast
from gradsieve.torch.fast.layer import LayerCall, apply

GATES = {"tanh": 1, "gru": 3, "lstm": 4}
every_cell = pytest.mark.parametrize("cell", GATES)


def call(cell: str, steps: int, batch: int, inputs: int, hidden: int):
    """u, weights and initial states that learn."""
    gates = GATES[cell] * hidden
    shapes = [(steps, batch, inputs), (gates, inputs), (gates, hidden), (gates,), (gates,)]
    shapes += [(batch, hidden)] * (2 if cell == "lstm" else 1)
    torch.manual_seed(0)
    u, *others = [(0.4 * torch.randn(s, dtype=torch.float64)).requires_grad_() for s in shapes]
    return u, others[:4], others[4:]


def by_operator(layer: LayerCall, u, weights, initial=()):
    """`apply` through the dispatcher."""
    cell, sizes, batch, reverse = layer
    found = fast.recurrent(cell, u, list(weights), list(initial), sizes, batch, reverse, True)
    return found[:3] if cell == "lstm" else (*found[:2], None)


def outputs(function, layer):
    """(h, last h[, last c]) as a function of flat arguments."""

    def of(u, *others):
        return tuple(o for o in function(layer, u, others[:4], others[4:]) if o is not None)

    return of


@every_cell
@pytest.mark.parametrize("function", [apply, by_operator])
def test_gradcheck_passes(cell, function):
    for shape, reverse in [((3, 2, 2, 3), False), ((1, 2, 3, 4), False), ((3, 2, 1, 3), True)]:
        layer = LayerCall(cell, reverse=reverse)
        u, weights, initial = call(cell, *shape)
        assert torch.autograd.gradcheck(outputs(function, layer), (u, *weights, *initial))


@every_cell
@pytest.mark.parametrize("function", [apply, by_operator])
def test_gradcheck_passes_without_biases_and_with_unequal_lengths(cell, function):
    u, weights, _ = call(cell, 9, 1, 2, 5)
    layer = LayerCall(cell, torch.tensor([4, 3, 1, 1]), 4)

    def of(u, *weights):
        return function(layer, u.squeeze(1), weights)[:2]

    assert torch.autograd.gradcheck(of, (u, *weights[:2]))


@every_cell
def test_opcheck_passes(cell):
    u, weights, initial = call(cell, 4, 3, 2, 5)
    torch.library.opcheck(fast.recurrent, (cell, u, weights, initial, None, 0, False, True))
    sizes = torch.tensor([5, 4, 3])
    rows = u.detach().reshape(12, 2)
    torch.library.opcheck(fast.recurrent, (cell, rows, weights[:2], [], sizes, 5, True, True))
    plain = [weight.detach() for weight in weights]
    h, last, _, gates, c = fast.recurrent(cell, u.detach(), plain, [], None, 0, False, True)
    seeds = [torch.randn_like(h), torch.randn_like(last), None]
    states = [h, gates, c]
    given = (cell, seeds, states, u.detach(), plain, [], None, False)
    torch.library.opcheck(fast.recurrent_gradients, given)


@every_cell
def test_each_gradient_is_the_same_when_it_is_the_only_one_asked_for(cell):
    u, weights, initial = call(cell, 5, 3, 2, 4)
    flat = (u, *weights, *initial)
    of = outputs(apply, LayerCall(cell))
    every = torch.autograd.grad(sum(o.sin().sum() for o in of(*flat)), flat)
    for needed in range(len(flat)):
        one = [tensor.detach().requires_grad_(i == needed) for i, tensor in enumerate(flat)]
        sum(o.sin().sum() for o in of(*one)).backward()
        torch.testing.assert_close(one[needed].grad, every[needed])
        assert all(tensor.grad is None for i, tensor in enumerate(one) if i != needed)


@every_cell
def test_the_last_states_alone_have_their_gradients(cell):
    u, weights, initial = call(cell, 5, 3, 2, 4)
    for index in (1, 2):
        found = apply(LayerCall(cell), u, weights, initial)
        if found[index] is None:
            continue
        other = by_operator(LayerCall(cell), u, weights, initial)
        torch.testing.assert_close(
            torch.autograd.grad(found[index].sin().sum(), (u, *weights)),
            torch.autograd.grad(other[index].sin().sum(), (u, *weights)),
        )


@every_cell
@pytest.mark.parametrize("function", [apply, by_operator])
def test_what_is_differentiated_twice_raises(cell, function):
    u, weights, _ = call(cell, 4, 2, 3, 5)
    loss = function(LayerCall(cell), u, weights)[0].sin().sum()
    (by_u,) = torch.autograd.grad(loss, u, create_graph=True)
    with pytest.raises(RuntimeError, match=r"differentiate twice|recurrent_gradients"):
        by_u.sum().backward()


@every_cell
def test_torch_compile_takes_it_into_one_graph(cell):
    u, weights, initial = call(cell, 4, 3, 2, 5)
    of = outputs(apply, LayerCall(cell))
    compiled = torch.compile(of, backend="aot_eager", fullgraph=True)
    given = (u, *weights, *initial)
    torch.testing.assert_close(
        torch.autograd.grad(compiled(*given)[0].sin().sum(), given[:5]),
        torch.autograd.grad(of(*given)[0].sin().sum(), given[:5]),
    )


def test_without_gradients_nothing_is_kept_for_them():
    u, weights, _ = call("lstm", 4, 3, 2, 5)
    with torch.no_grad():
        h, *_ = apply(LayerCall("lstm"), u, weights)
    assert h.grad_fn is None
    found = fast.recurrent("lstm", u.detach(), [w.detach() for w in weights], [], None, 0, False, 0)
    assert found[3].numel() == found[4].numel() == 0
    torch.testing.assert_close(found[0], h)


def test_tensors_that_are_not_laid_out_plainly_are_read_right():
    _, weights, _ = call("gru", 4, 3, 2, 5)
    z = torch.randn(6, 2, 3, dtype=torch.complex128)
    negative = z.conj().imag.transpose(1, 2)  # lazily negated and not contiguous
    assert negative.is_neg()
    plain = negative.resolve_neg().contiguous()
    found = [apply(LayerCall("gru"), u, weights)[0] for u in (negative, plain)]
    torch.testing.assert_close(*found)
    by = [torch.autograd.grad(h.sum(), weights[1]) for h in found]  # a gradient of stride 0
    torch.testing.assert_close(*by)


def test_a_tensor_that_does_not_fit_is_named():
    u, (weight_ih, weight_hh, *biases), _ = call("tanh", 4, 3, 2, 5)
    wrong = torch.zeros(5, 3, dtype=torch.float64)
    with pytest.raises(InvalidArgument, match=r"weight_ih has shape \(5, 3\).*must be \(5, 2\)"):
        apply(LayerCall("tanh"), u, (wrong, weight_hh, *biases))
    with pytest.raises(InvalidArgument, match="bias_hh must hold float64"):
        apply(LayerCall("tanh"), u, (weight_ih, weight_hh, biases[0], torch.zeros(5)))
    with pytest.raises(InvalidArgument, match=r"h0 has shape \(3, 4\); it must be \(3, 5\)"):
        apply(LayerCall("tanh"), u, (weight_ih, weight_hh), (wrong[:3, :1].expand(3, 4),))
