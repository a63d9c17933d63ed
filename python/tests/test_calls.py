"""Calls that fit no signature, and objects that were never initialised: what the errors say."""

import numpy as np
import pytest
from conftest import refused

import weft
from weft import nn

# All classes of the extension whose objects are made by calling them, or only by functions.
CLASSES = sorted(
    {
        c
        for space in (weft._weft, weft._weft._nn)
        for c in vars(space).values()
        if type(c).__name__.startswith("nb_type") and c is not weft.Tensor
    },
    key=lambda c: c.__name__,
)


def says(what, *words):
    with pytest.raises(TypeError) as caught:
        what()
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
@pytest.mark.filterwarnings("ignore:nanobind")
def test_an_object_that_was_never_initialised(cls):
    thing, used = cls.__new__(cls), 0
    for base in cls.__mro__[:-1]:
        for name, member in vars(base).items():
            getter = member.fget if isinstance(member, property) else member
            if type(getter).__name__ != "nb_method" or name == "__init__":
                continue
            for more in ((), (1,)):
                with pytest.raises((TypeError, NotImplementedError)) as caught:
                    if getter(thing, *more) is NotImplemented:  # an operator that leaves it to the other side
                        raise NotImplementedError
                words = f"this {cls.__name__} was never initialised: {cls.__name__}(...) makes one"
                assert caught.type is NotImplementedError or words in str(caught.value)
            used += 1
    assert used or cls is nn.Initial  # which has none


@pytest.mark.filterwarnings("ignore:nanobind")
def test_a_module_whose_init_forgets_the_one_above():
    class Forgets(nn.Module):
        def __init__(self):
            self.width = 3

    says(lambda: Forgets().build(), "Module.build()", "this Forgets was never initialised", "super().__init__()")
    says(lambda: Forgets().training, "Module.training", "this Forgets")
    says(lambda: nn.Sequential(Forgets()).build(), "part '0' is a Forgets that was never initialised", "super().__init__()")


def test_an_argument_of_a_wrong_type():
    says(lambda: nn.Linear("a", 2), "Linear(): 'inputs' must be int, got a str", "It takes Linear(inputs: int, outputs: int, bias: bool = True)")
    says(lambda: weft.tensor(None), "tensor(): 'data' must not be None", "It takes tensor(data: object")
    says(lambda: nn.LayerNorm(4).build()(3), "LayerNorm(): 'x' must be Tensor, got an int")
    says(lambda: nn.Tokenizer.bytes().decode([1, "b"]), "'ids' must be Sequence[int], got a list whose [1] is a str")
    says(lambda: nn.Decoder(nn.Linear(2, 2)), "'model' must be LanguageModel, got a Linear")
    says(lambda: setattr(nn.Linear(2, 2), "training", "yes"), "Module.training", "must be bool, got a str")
    says(lambda: weft.save_safetensors("x", {"a": 3}), "'tensors' must be Mapping[str, Tensor], got a dict whose ['a'] is an int")


def test_arguments_that_are_missing_or_unknown():
    says(lambda: nn.Linear(2), "Linear(): missing a required argument: 'outputs'")
    says(lambda: nn.Linear(2, 3, True, nn.Initial.constant(0), 4), "Linear(): too many positional arguments")
    says(lambda: nn.AdamW([], beta3=1), "AdamW(): got an unexpected keyword argument 'beta3'", "beta1: float = 0.9")
    says(lambda: weft.zeros(), "zeros(): missing a required argument: 'shape'")


def test_texts_that_utf8_can_not_say():
    tokenizer = nn.Tokenizer.bytes()
    for what in (lambda: tokenizer.encode("a\udc80"), lambda: nn.Tokenizer.train_characters("a\udc80"), lambda: tokenizer.id("a\udc80")):
        says(what, "got a str with a lone surrogate at 1", "errors='replace'")
    assert tokenizer.encode("a\udc80".encode(errors="replace").decode()) == [97, 63]


def test_an_error_of_the_callers_own_is_left_alone():
    class Mine(weft.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, dy):
            raise TypeError("mine")

    x = weft.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="^mine$"):
        Mine.apply(x).sum().backward()
    assert np.array_equal(x.numpy(force=True), [1, 1])


def test_errors_speak_python():
    model = nn.Linear(2, 2)
    refused(lambda: model(weft.ones((1, 2))), "call model.build(), or load")
    refused(lambda: nn.Linear(2, 2).load_state_dict({}, strict=False), "call model.build() before loading")
    refused(lambda: weft.tensor([1e300]), "use f64 (weft.cast(x, weft.f64) converts a tensor)")
    refused(lambda: nn.AdamW([weft.ones(2, requires_grad=True)]).step(1e300), "weft.tensor: f32 can't hold 1e+300")
    refused(lambda: nn.Decoder(nn.GPT(vocabulary=8, context=8, layers=1, heads=1, width=8).build().train()), "model.eval()")
    x = weft.ones((2, 2), requires_grad=True)
    refused(lambda: weft.sgd_step(x, weft.ones((2, 2)), weft.ones((2, 2)), weft.tensor(0.1)), "call it under weft.no_grad()")


def test_documentation_speaks_python():
    for name, op in vars(weft).items():
        if callable(op) and op.__doc__:
            assert "invalid_argument" not in op.__doc__ and "::" not in op.__doc__, name
    assert "weft.InvalidArgument" in weft.softmax.__doc__ and "weft.InvalidArgument" in weft.Tensor.softmax.__doc__


def test_errors_that_are_no_utf8(tmp_path):
    with pytest.raises(weft.Error, match="nowhere"):
        weft.load_safetensors(str(tmp_path / "nowhere\udcff"))


def test_documentation_names_parameters_as_python_does():
    assert "`from_`" in weft.assign.__doc__ and "`from`" not in weft.assign.__doc__


def test_sizes_that_are_symbols_say_so():
    n = weft.Dim("n", 4, 8)
    assert (n.min, n.max) == (4, 8)
    for use in (lambda: range(n), lambda: float(n), lambda: int(n)):
        with pytest.raises(TypeError, match="the size n is a symbol from 4 to 8, and no int"):
            use()

    @weft.compile(dynamic_shapes={"x": {0: "n"}})
    def scaled(x):
        return x * x.shape[0]

    assert scaled(weft.ones((3,))).tolist() == [3, 3, 3]
    assert scaled(weft.ones((5,))).tolist() == [5, 5, 5, 5, 5]
