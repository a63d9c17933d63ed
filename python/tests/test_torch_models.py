"""Whole models through torch.compile(backend="weft"): forward, and one training step, beside eager."""

import copy
import os

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import weft.torch  # noqa: E402
from torch_models import GPT2, MODELS, ids  # noqa: E402
from weft.torch import report  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(1)
    torch.set_num_threads(2)


def randomised(model):
    """Nothing stays at 0 or 1, as norms, biases and running statistics begin."""
    with torch.no_grad():
        for t in [*model.parameters(), *model.buffers()]:
            if t.is_floating_point() and t.dim() == 1:
                t.add_(torch.rand_like(t) * 0.3)
    return model


def wide(values):
    return tuple(v.double() if v.is_floating_point() else v for v in values)


def assert_as_good(got, eager, right, what):
    """`got` is as near to what f64 says as eager is, or nearly."""
    scale = right.abs().max().item() + 1e-6
    theirs, ours = ((t.double() - right).abs().max().item() / scale for t in (eager, got))
    assert got.dtype == eager.dtype and got.shape == eager.shape and got.stride() == eager.stride(), what
    assert ours <= 4 * theirs + 2e-5, f"{what}: off by {ours:.2g} of its largest element, eager by {theirs:.2g}"


def nothing_left(graphs):
    assert graphs, "nothing was compiled"
    assert [item for g in graphs for item in g.left] == []


@pytest.mark.parametrize("name", MODELS)
def test_forward(name):
    model, inputs = MODELS[name]()
    randomised(model).eval()
    with torch.no_grad(), report.collected() as graphs:
        compiled = torch.compile(model, backend=weft.torch.backend)
        for _ in range(3):  # the first run links, later ones may run as recorded sequences
            got = compiled(*inputs)
        assert_as_good(got, model(*inputs), copy.deepcopy(model).double()(*wide(inputs)), name)
    nothing_left(graphs)


slow = pytest.mark.skipif("WEFT_FULL" not in os.environ, reason="PyTorch traces it for seconds: WEFT_FULL=1 runs it")
OTHER_SIZES = {
    "minilm": [(ids(5, 33), (torch.arange(33) < torch.tensor([[3], [33], [1], [20], [7]])).long()), (ids(3, 7), torch.ones(3, 7).long())],
    "gpt2": [(ids(5, 33),), (ids(3, 7),)],
    "resnet18": [(torch.randn(3, 3, 64, 64),), (torch.randn(7, 3, 64, 64),)],
    "vit": [(torch.randn(7, 3, 16, 16),), (torch.randn(3, 3, 16, 16),)],
}


def sizes_change(name, model):
    """The model compiled for symbolic sizes, and inputs of several sizes."""
    first = MODELS[name]()[1]
    texts = first[0].dim() == 2
    if not texts:  # images of one size, in batches of several
        torch._dynamo.mark_dynamic(first[0], 0)
    compiled = torch.compile(model, backend=weft.torch.backend, dynamic=True if texts else None)
    return compiled, [first, *OTHER_SIZES[name], first]


@pytest.mark.parametrize("name", [pytest.param("minilm", marks=slow), pytest.param("gpt2", marks=slow), pytest.param("resnet18", marks=slow), "vit"])
def test_sizes_that_change(name):
    model = randomised(MODELS[name]()[0]).eval()
    wider = copy.deepcopy(model).double()
    with torch.no_grad(), report.collected() as graphs:
        compiled, all_inputs = sizes_change(name, model)
        for inputs in all_inputs:
            assert_as_good(compiled(*inputs), model(*inputs), wider(*wide(inputs)), name)
    nothing_left(graphs)
    assert len(graphs) == 1, "one for all sizes"


@pytest.mark.parametrize("name, make", [
    pytest.param("gpt2", lambda: GPT2(layers=1), id="gpt2 of one layer"),
    pytest.param("gpt2", lambda: MODELS["gpt2"]()[0], id="gpt2", marks=slow),
    pytest.param("resnet18", lambda: MODELS["resnet18"]()[0], id="resnet18", marks=slow),  # its norms divide by sizes that are symbols
])
def test_a_step_of_sizes_that_change(name, make):
    model = randomised(make())
    ours = copy.deepcopy(model)
    with report.collected() as graphs:
        compiled, all_inputs = sizes_change(name, ours)
        for inputs in all_inputs:
            got, want = step(ours, compiled, inputs), step(model, model, inputs)
            for k in want:
                torch.testing.assert_close(got[k], want[k], rtol=2e-4, atol=1e-4 * want[k].abs().max().item() + 1e-6, msg=k)
    nothing_left(graphs)
    assert len(graphs) == 2


def step(model, function, inputs):
    """Loss, gradients and buffers of one step."""
    model.zero_grad()
    out = function(*inputs)
    loss = (out.square() * torch.linspace(0.5, 1.5, out.shape[-1], dtype=out.dtype)).mean()
    loss.backward()
    return {"loss": loss.detach(), **{f"gradient of {k}": p.grad for k, p in model.named_parameters()},
            **{k: b.clone() for k, b in model.named_buffers()}}


@pytest.mark.parametrize("name", MODELS)
def test_training_step(name):
    model, inputs = MODELS[name]()
    randomised(model).train()
    ours, right = copy.deepcopy(model), copy.deepcopy(model).double()
    with report.collected() as graphs:
        got = step(ours, torch.compile(ours, backend=weft.torch.backend), inputs)
    eager, exact = step(model, model, inputs), step(right, right, wide(inputs))
    nothing_left(graphs)
    assert len(graphs) == 2, "a forward and a backward graph"
    largest = max(exact[k].abs().max().item() for k in exact if k.startswith("gradient"))
    for k in exact:
        if k.startswith("gradient") and exact[k].abs().max().item() < 1e-6 * largest:
            continue  # 0 but for rounding, as that of a bias before a norm
        assert_as_good(got[k], eager[k], exact[k].double(), f"{name}: {k}")


def test_trains_like_eager():
    """Ten steps of an optimizer in PyTorch around graphs of Weft's."""
    losses = []
    for compile in (lambda m: m, lambda m: torch.compile(m, backend=weft.torch.backend)):
        torch.manual_seed(3)
        model, (ids,) = MODELS["gpt2"]()
        function, optimizer = compile(model), torch.optim.AdamW(model.parameters(), 1e-2)
        of_this = []
        for _ in range(10):
            loss = torch.nn.functional.cross_entropy(function(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            of_this.append(loss.item())
        losses.append(of_this)
    assert losses[0][-1] < 0.7 * losses[0][0]
    assert losses[1] == pytest.approx(losses[0], rel=2e-4)
