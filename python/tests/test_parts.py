"""What is set in a module: its parts, and tensors in the place of its parameters."""

import copy
import pickle
from collections import OrderedDict, deque

import numpy as np
import pytest
from conftest import refused

import weft
from weft import nn


class Holder(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.held = value


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor, self.count = nn.Parameter((2, 3)), nn.State(1)

    def forward(self, x):
        return x * self.factor


def names(value):
    return [n.removesuffix(".weight") for n, _ in Holder(value).build().named_parameters()]


def linear():
    return nn.Linear(2, 2, bias=False)


def test_dicts_and_nested_lists_hold_parts():
    assert names({"a": linear(), "b": linear()}) == ["held.a", "held.b"]
    assert names(OrderedDict(z=linear(), y=linear())) == ["held.z", "held.y"]
    assert names({1: [linear()], 2: {"c": (linear(), linear())}}) == ["held.1.0", "held.2.c.0", "held.2.c.1"]
    assert names([[linear()], [linear()]]) == ["held.0.0", "held.1.0"]
    assert names({"rate": 3, "sizes": [1, 2]}) == names([0.5, "a"]) == names([]) == names({}) == []
    filled = Holder({})
    filled.held["late"] = linear()
    assert [n for n, _ in filled.build().named_parameters()] == ["held.late.weight"]


def test_parts_of_a_dict_are_trained():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = {"left": nn.Linear(2, 1), "right": nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 1))}

        def forward(self, x):
            return self.experts["left"](x) + self.experts["right"](x)

    model = Experts().build(seed=1).train()
    assert model.experts["right"][0].training
    before = model.experts["left"].weight.tolist()
    model(weft.ones((1, 2))).sum().backward()
    nn.SGD(model.parameters()).step(0.1)
    assert model.experts["left"].weight.tolist() != before and len(model.state_dict()) == 5  # and the state of Dropout


@pytest.mark.parametrize(
    "value, words",
    [
        ([linear(), 3], "'held' holds modules, and 'held.1' is a int"),
        ({"a": linear(), "b": weft.relu}, "'held.b' is a builtin_function_or_method"),
        ([[linear()], [2]], "'held.1' is a list"),
        ({"a": [linear(), "b"]}, "'held.a' holds modules, and 'held.a.1' is a str"),
        ([nn.Parameter(2)], "'held.0' is a Parameter in a list"),
        ({"a": nn.Parameter(2)}, "'held.a' is a Parameter in a dict"),
        ({linear()}, "'held' is a set with modules"),
        (deque([linear()]), "'held' is a deque with modules"),
    ],
)
def test_parts_that_would_not_be_trained_are_refused(value, words):
    with pytest.raises(TypeError) as caught:
        Holder(value)
    assert words in str(caught.value), str(caught.value)


def test_a_tensor_in_the_place_of_a_parameter():
    model = Scale().build()
    model.factor = weft.ones((2, 3))
    assert model.factor.requires_grad and model.factor.name == "factor" and len(model.parameters()) == 1
    model(weft.ones((2, 3))).sum().backward()
    assert model.factor.grad.tolist() == [[1, 1, 1], [1, 1, 1]]
    refused(lambda: setattr(model, "factor", weft.ones((3, 2))), "Scale.factor is f32[2, 3], got f32[3, 2]", "reshape()")
    refused(lambda: setattr(model, "factor", weft.ones((2, 3), dtype="f64")), "Scale.factor is f32[2, 3], got f64[2, 3]", "cast()")
    refused(lambda: setattr(model, "factor", model.factor * 2), "without history", "detach()")
    assert model.factor.tolist() == [[1, 1, 1], [1, 1, 1]]
    refused(lambda: setattr(Scale(), "factor", weft.ones((2, 3))), "Scale.factor has no elements", "build()")


def test_a_frozen_parameter_stays_frozen_and_a_state_is_none():
    model = Scale().build()
    model.factor.requires_grad = False
    model.factor = weft.ones((2, 3))
    assert not model.factor.requires_grad
    model.count = weft.ones(1)
    assert model.count.tolist() == [1] and not model.count.requires_grad
    refused(lambda: setattr(model, "count", weft.ones(1, requires_grad=True)), "Scale.count", "requires a gradient")
    refused(lambda: setattr(model, "count", weft.ones(2)), "Scale.count is f32[1], got f32[2]")


def test_a_tensor_in_the_place_of_a_layers():
    layer = linear().build()
    layer.weight = weft.ones((2, 2))
    assert layer.weight.requires_grad and layer(weft.ones((1, 2))).tolist() == [[2, 2]]
    refused(lambda: setattr(layer, "weight", weft.ones((2, 3))), "Linear.weight is f32[2, 2], got f32[2, 3]")
    refused(lambda: setattr(layer, "bias", weft.ones(2)), "Linear.bias has no elements")
    norm = nn.BatchNorm2d(2).build()
    norm.running_mean = weft.ones(2)
    assert not norm.running_mean.requires_grad and len(norm.states()) == 2
    other = linear().build()
    other.weight = layer.weight  # one tensor for both
    other(weft.ones((1, 2))).sum().backward()
    assert layer.weight.grad is not None and np.array_equal(layer.weight.grad.numpy(), np.ones((2, 2)))


def test_state_dicts_of_arrays():
    model, other = Scale().build(), Scale().build()
    arrays = {"factor": np.arange(6, dtype=np.float64).reshape(3, 2).T, "count": np.ones(1, np.float32)}
    assert model.load_state_dict(arrays) == {"missing": [], "unexpected": []}
    assert model.factor.tolist() == [[0, 2, 4], [1, 3, 5]] and model.factor.requires_grad and model.factor.dtype == weft.f32
    other.load_state_dict({n: t.numpy(force=True) for n, t in model.state_dict().items()} | {"count": weft.zeros(1)})
    assert other.factor.tolist() == model.factor.tolist() and other.count.tolist() == [0]
    refused(lambda: model.load_state_dict({"factor": np.ones((3, 2))}, strict=False), "'factor' is f64[3, 2]", "f32[2, 3]")
    for given, words in (
        ({"factor": [[1.0]]}, "'factor' must be a Tensor or an array, got list"),
        ({3: weft.ones(1)}, "a name must be a str, got 3"),
        ("model.safetensors", "takes a dict of tensors or arrays by name, got a str; load"),
        ({"factor": np.array(["a"])}, "are no numbers"),
    ):
        with pytest.raises(TypeError, match=words):
            model.load_state_dict(given)


def gpt():
    return nn.GPT(vocabulary=8, context=8, layers=1, heads=1, width=8)


@pytest.mark.parametrize("make", [Scale, linear, lambda: nn.Sequential(linear(), weft.relu), gpt])
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_modules_are_copied_by_their_elements(make, way):
    model = make().build(seed=1)
    with pytest.raises(TypeError) as caught:
        way(model)
    assert f"{type(model).__name__} can't be copied or pickled" in str(caught.value)
    assert "load_state_dict(model.state_dict())" in str(caught.value)
    other = make().build(seed=2)
    other.load_state_dict(pickle.loads(pickle.dumps(model.state_dict())))
    assert [t.tolist() for t in other.parameters()] == [t.tolist() for t in model.parameters()]


def test_modules_print_what_they_have():
    assert repr(nn.Linear(3, 2)) == "Linear(weight f32[2, 3], bias f32[2])"
    assert repr(Scale().build(dtype="f64")).startswith("Scale(factor f64[2, 3]")
    text = repr(Holder([linear(), nn.LayerNorm(4)]))
    assert text == "Holder(\n  held.0: weight f32[2, 2]\n  held.1: weight f32[4], bias f32[4]\n)"
    assert repr(nn.Sequential()) == "Sequential()"


def test_layers_of_no_size():
    for make, words in [
        (lambda: nn.Linear(-1, 2), "Linear: inputs must not be negative, got -1"),
        (lambda: nn.Linear(1, -2), "Linear: outputs must not be negative, got -2"),
        (lambda: nn.Embedding(-3, 2), "Embedding: count must not be negative, got -3"),
    ]:
        refused(make, words)


def test_tokenizers_print_and_refuse_ids_that_are_none():
    t = nn.Tokenizer.train_characters("abcabc")
    assert repr(t) == f"<weft.nn.Tokenizer of {len(t)} ids>"
    for wrong in (len(t), 99, -1):
        refused(lambda: t.decode([1, wrong]), f"{wrong} is no id of this tokenizer")
    assert t.decode(t.encode("cab")) == "cab"
