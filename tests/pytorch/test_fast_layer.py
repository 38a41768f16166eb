"""gst.SRN against nn.RNN, gradcheck and opcheck."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import gradsieve.torch as gst
from gradsieve.errors import InvalidArgument
from gradsieve.torch.fast.tanh_layer import apply, tanh_gradients, tanh_layer


def pair(dtype: torch.dtype = torch.float64, **settings: bool) -> tuple[gst.SRN, nn.RNN]:
    plain = nn.RNN(3, 7, dtype=dtype, **settings)
    fast = gst.SRN(3, 7, dtype=dtype, **settings)
    fast.load_state_dict(plain.state_dict())
    return fast, plain


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("settings", [{}, {"bias": False}, {"batch_first": True}])
@pytest.mark.parametrize("given", [False, True])
def test_outputs_and_gradients_are_those_of_nn_rnn(dtype, settings, given):
    fast, plain = pair(dtype, **settings)
    found = []
    for module in (fast, plain):
        torch.manual_seed(1)
        u = torch.randn(5, 5, 3, dtype=dtype, requires_grad=True)
        h = torch.randn(1, 5, 7, dtype=dtype, requires_grad=True) if given else None
        outputs, last = module(u, h)
        (outputs.sin().sum() + 2 * (last * last).sum()).backward()
        grads = [p.grad for p in module.parameters()] + [u.grad] + ([h.grad] if given else [])
        found.append([outputs.detach(), last.detach(), *grads])
    assert list(fast.state_dict()) == list(plain.state_dict())
    torch.testing.assert_close(found[0], found[1])


def test_unbatched_and_packed_inputs_work_as_in_nn_rnn():
    fast, plain = pair()
    u = torch.randn(6, 3, dtype=torch.float64)
    torch.testing.assert_close(fast(u), plain(u))
    packed = pack_padded_sequence(torch.randn(6, 2, 3, dtype=torch.float64), torch.tensor([6, 4]))
    torch.testing.assert_close(fast(packed)[0].data, plain(packed)[0].data)


def whole_call(*shape: int) -> tuple[torch.Tensor, ...]:
    steps, batch, inputs, hidden = shape
    shapes = [(steps, batch, inputs), (hidden, inputs), (hidden, hidden), (batch, hidden)]
    tensors = [0.4 * torch.randn(s, dtype=torch.float64) for s in [*shapes, (hidden,), (hidden,)]]
    return tuple(tensor.requires_grad_() for tensor in tensors)


@pytest.mark.parametrize("function", [apply, tanh_layer])
@pytest.mark.parametrize("shape", [(4, 3, 2, 5), (1, 2, 3, 4), (20, 17, 1, 3)])
def test_gradcheck_passes(function, shape):
    given = whole_call(*shape)
    assert torch.autograd.gradcheck(function, given)
    assert torch.autograd.gradcheck(lambda *a: function(*a, None, None, None), given[:3])


def test_opcheck_passes():
    given = whole_call(4, 3, 2, 5)
    torch.library.opcheck(tanh_layer, given)
    torch.library.opcheck(tanh_layer, (*given[:3], None, None, None))
    u, _, weight_hh, initial, *_ = (tensor.detach() for tensor in given)
    z = torch.rand(4, 3, 5, dtype=torch.float64)
    torch.library.opcheck(tanh_gradients, (torch.randn_like(z), z, u, weight_hh, initial))


@pytest.mark.parametrize("needed", range(6))
def test_each_gradient_is_the_same_when_it_is_the_only_one_asked_for(needed):
    given = whole_call(5, 3, 2, 4)
    every = torch.autograd.grad(apply(*given).sin().sum(), given)
    one = [tensor.detach().requires_grad_(i == needed) for i, tensor in enumerate(given)]
    apply(*one).sin().sum().backward()
    torch.testing.assert_close(one[needed].grad, every[needed])
    assert all(tensor.grad is None for i, tensor in enumerate(one) if i != needed)


def test_blocks_of_steps_add_up_to_the_gradients_of_nn_rnn():
    fast, plain = gst.SRN(5, 33, dtype=torch.float64), nn.RNN(5, 33, dtype=torch.float64)
    fast.load_state_dict(plain.state_dict())
    for batch in (1, 9, 300):
        u = torch.randn(40, batch, 5, dtype=torch.float64)
        found = [
            torch.autograd.grad(module(u)[0].sin().sum(), list(module.parameters()))
            for module in (fast, plain)
        ]
        torch.testing.assert_close(found[0], found[1])


def test_what_is_differentiated_twice_raises():
    u = torch.randn(4, 2, 3, requires_grad=True)
    (by_u,) = torch.autograd.grad(gst.SRN(3, 5)(u)[0].sin().sum(), u, create_graph=True)
    with pytest.raises(RuntimeError, match="tanh_gradients"):
        by_u.sum().backward()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_torch_compile_follows_it(backend):
    fast, plain = pair()
    u = torch.randn(6, 2, 3, dtype=torch.float64)
    found = [
        torch.autograd.grad(module(u)[0][-1].sin().sum(), list(owner.parameters()))
        for module, owner in ((torch.compile(fast, backend=backend), fast), (plain, plain))
    ]
    torch.testing.assert_close(found[0], found[1])
    # Every module of class nn.RNN is a break for dynamo; what stands in this one is not.
    given = whole_call(4, 3, 2, 5)
    compiled = torch.compile(apply, backend=backend, fullgraph=True)
    torch.testing.assert_close(
        torch.autograd.grad(compiled(*given).sin().sum(), given),
        torch.autograd.grad(apply(*given).sin().sum(), given),
    )


def test_the_transforms_of_torch_func_go_through_it():
    fast, plain = pair()
    u = torch.randn(6, 2, 3, dtype=torch.float64)

    def loss(module, weights):
        return torch.func.functional_call(module, weights, (u,))[0].sin().sum()

    found = [
        torch.func.grad(lambda weights, module=module: loss(module, weights))(
            dict(module.named_parameters())
        )
        for module in (fast, plain)
    ]
    torch.testing.assert_close(found[0], found[1])


def test_copies_without_gradients_and_from_a_pickle_give_the_same():
    fast = gst.SRN(3, 7)
    u = torch.randn(6, 2, 3)
    expected = fast(u)[0]
    for module in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        with torch.no_grad():
            outputs = module(u)[0]
        assert not outputs.requires_grad
        assert torch.equal(outputs, expected)


def test_tensors_that_are_not_laid_out_plainly_are_read_right():
    fast, plain = pair()
    z = torch.randn(6, 3, 2, dtype=torch.complex128)
    negative = z.conj().imag.transpose(1, 2)  # lazily negated and not contiguous
    assert negative.is_neg()
    torch.testing.assert_close(fast(negative)[0], plain(negative)[0])
    found = [
        torch.autograd.grad(
            module(negative)[0].sum(), module.weight_hh_l0
        )  # a gradient of stride 0
        for module in (fast, plain)
    ]
    torch.testing.assert_close(found[0], found[1])


def test_a_tensor_that_does_not_fit_is_named():
    u, weight_ih, weight_hh, initial, *biases = whole_call(4, 3, 2, 5)
    with pytest.raises(InvalidArgument, match=r"weight_ih is \(5, 3\).*must be \(5, 2\)"):
        apply(u, torch.zeros(5, 3).double(), weight_hh, initial, *biases)
    with pytest.raises(InvalidArgument, match=r"bias_hh is .*float32.*float64"):
        apply(u, weight_ih, weight_hh, initial, biases[0], torch.zeros(5))


def test_the_sieve_follows_it_as_it_follows_nn_rnn():
    verdicts = []
    for module in pair():
        optimizer = gst.Sieve(
            module,
            torch.optim.SGD(module.parameters(), lr=0.1),
            "skip",
            q_range=(-1e6, 1e6),
            max_change=1e9,
        )
        torch.manual_seed(2)
        module(torch.randn(9, 4, 3, dtype=torch.float64))[0][-1].sum().backward()
        optimizer.step()
        verdicts.append(optimizer.last)
    assert pytest.approx(verdicts[1].Q, rel=1e-9) == verdicts[0].Q
    assert verdicts[0].dS == pytest.approx(verdicts[1].dS, rel=1e-7)


@pytest.mark.parametrize("shape", [(4, 2, 2), (4, 2, 2, 3), (0, 2, 3)])
def test_a_wrong_input_is_named(shape):
    with pytest.raises(InvalidArgument, match="input has shape"):
        gst.SRN(3, 4)(torch.zeros(shape))
    with pytest.raises(InvalidArgument, match="hx has shape"):
        gst.SRN(3, 4)(torch.zeros(4, 2, 3), torch.zeros(1, 2, 5))
