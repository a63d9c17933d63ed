"""Modules, training, text: Python's spelling of weft/nn.h and what goes with it."""

import signal
import time

import numpy as np
import pytest
from conftest import refused, same

import weft
from weft import nn

TEXT = "to be or not to be, that is the question\n" * 400


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(width, nn.Initial.constant(1))
        self.note = "no part"

    def forward(self, x):
        return x + self.scale * self.down(weft.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width=8, depth=2):
        super().__init__()
        self.blocks = [Block(width) for _ in range(depth)]
        self.drop = nn.Dropout(0.5)
        self.seen = nn.State(1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.drop(x)


def test_a_class_is_a_module():
    net = Net().build(seed=1)
    names = [name for name, _ in net.named_parameters()]
    assert names[:4] == ["blocks.0.norm.weight", "blocks.0.norm.bias", "blocks.0.up.weight", "blocks.0.up.bias"]
    assert "blocks.1.scale" in names and "seen" not in names and len(names) == 14
    assert len(net.states()) == 2 and net.parameter_count() == 2 * (8 * 2 + 8 * 32 + 32 + 32 * 8 + 8 + 8)
    assert net.blocks[0].note == "no part" and isinstance(net.blocks[0].up, nn.Linear) and isinstance(net, nn.Module)
    assert net.blocks[0].scale.tolist() == [1] * 8 and net.blocks[0].scale.requires_grad
    again = Net().build(seed=1)
    same(again.blocks[1].up.weight.detach(), net.blocks[1].up.weight.detach().numpy())


def test_parts_that_are_not_right():
    refused(lambda: Net()(weft.ones((2, 8))), "no elements yet")
    net = Net().build()
    refused(lambda: net(weft.ones((2, 7))), "blocks.0.norm", "f32[7]")
    with pytest.raises(AttributeError, match="Net has no attribute 'nothing'"):
        net.nothing
    with pytest.raises(NotImplementedError, match="forward"):
        type("Empty", (nn.Module,), {})()(1)
    with pytest.raises(TypeError):
        type("Mine", (nn.Linear,), {})

    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.me = self

    refused(lambda: Loop().build(), "no module can hold itself")


def test_training_mode_goes_down():
    net = Net().build(seed=1)
    x = weft.ones((4, 8))
    assert not net.training and net(x).tolist() == net(x).tolist()
    net.train()
    assert net.training and net.drop.training and net(x).tolist() != net(x).tolist()
    assert not net.eval().blocks[0].training


def test_tied_parameters():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)

        def forward(self, x):
            return self.b(self.a(x))

    m = Tied().build(seed=1)
    m.b.weight = m.a.weight
    assert len(m.parameters()) == 1
    m(weft.ones((1, 3))).sum().backward()
    assert m.a.weight.grad is not None


@pytest.mark.parametrize("make", [lambda p: nn.AdamW(p, clip=1.0), lambda p: nn.SGD(p, momentum=0.9)])
def test_it_learns(make):
    net = Net().build(seed=1)
    optimizer = make(net.parameters())
    x, losses = weft.tensor(np.random.default_rng(1).standard_normal((16, 8)).astype(np.float32)), []
    for step in range(60):
        loss = (net(x) - x.sin()).square().mean()
        loss.backward()
        optimizer.step(nn.Schedule(rate=2e-2).at(step, step / 60))
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3
    refused(lambda: optimizer.step(0.1), "gradient")


def test_state_dict_and_files(tmp_path):
    a, b = Net().build(seed=1), Net().build(seed=2)
    report = b.load_state_dict(a.state_dict())
    assert report == {"missing": [], "unexpected": []}
    same(b.blocks[0].up.weight.detach(), a.blocks[0].up.weight.detach().numpy())
    path = tmp_path / "net.safetensors"
    a.save(path)
    c = Net().build(seed=3)
    c.load(path)
    same(c.blocks[1].down.bias.detach(), a.blocks[1].down.bias.detach().numpy())
    part = dict(list(a.state_dict().items())[:3])
    refused(lambda: c.load_state_dict(part), "blocks.0.scale")
    assert "blocks.1.scale" in c.load_state_dict(part, strict=False)["missing"]
    tensors = weft.load_safetensors(path)
    assert sorted(tensors) == sorted(a.state_dict())
    weft.save_safetensors(tmp_path / "two.safetensors", {"x": weft.ones(2)}, {"by": "me"})
    assert weft.load_safetensors(tmp_path / "two.safetensors")["x"].tolist() == [1, 1]
    with pytest.raises(weft.Unavailable):
        weft.load_safetensors("/nowhere.safetensors")


def test_layers_say_what_their_ops_say(rng):
    x = weft.tensor(rng.standard_normal((2, 5)).astype(np.float32))
    linear = nn.Linear(5, 3).build(seed=1)
    same(linear(x).detach(), weft.linear(x, linear.weight, linear.bias).detach().numpy())
    assert nn.Linear(5, 3, bias=False).build().bias is None
    norm = nn.RMSNorm(5).build()
    same(norm(x).detach(), weft.rms_norm(x, norm.weight, 1e-6).detach().numpy())
    table = nn.Embedding(7, 4).build(seed=1)
    same(table(weft.tensor([1, 6])).detach(), table.weight.detach().numpy()[[1, 6]])
    conv = nn.Conv2d(3, 4, padding=1).build(seed=1)
    assert conv(weft.ones((2, 3, 5, 6))).shape == (2, 4, 5, 6)
    assert nn.ResNet(widths=[4, 8], blocks=1).build(seed=1)(weft.ones((2, 3, 8, 8))).shape == (2, 10)


def test_blocks_of_transformers(rng):
    x = weft.tensor(rng.standard_normal((2, 5, 8)).astype(np.float32))
    for make in (
        lambda: nn.Attention(8, heads=2),
        lambda: nn.Attention(8, heads=4, kv_heads=2, bias=True, norm_heads=True),
        lambda: nn.MLP(8, 16, nn.Activation.relu),
        lambda: nn.GatedMLP(8, 16),
    ):
        block = make().build(seed=1)
        y = block(x)
        assert y.shape == x.shape
        y.square().sum().backward()
        assert all(p.grad is not None for p in block.parameters())
    attention = nn.Attention(8, heads=2).build(seed=1)
    with weft.no_grad():
        np.testing.assert_allclose(attention(x[:, :3]).numpy(), attention(x)[:, :3].numpy(), rtol=1e-4, atol=1e-6)  # no token sees later ones
    mlp = nn.MLP(8, 16, nn.Activation.relu, first=nn.Initial.constant(0.5), first_out=nn.Initial.constant(1)).build()
    np.testing.assert_allclose(mlp(x).detach().numpy()[..., 0], 16 * np.maximum(x.numpy().sum(-1) * 0.5, 0), rtol=1e-4)
    refused(lambda: nn.Attention(8, heads=3), "8", "3")


def test_sequences_of_layers():
    model = nn.Sequential(nn.Linear(2, 4), weft.relu, nn.LayerNorm(4)).append(nn.Linear(4, 3)).build(seed=1)
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias", "3.weight", "3.bias"]
    assert len(model) == 4 and model[1] is weft.relu
    x = weft.ones((1, 2))
    same(model(x).detach(), model[3](model[2](weft.relu(model[0](x)))).detach().numpy())
    assert model.train()[2].training
    with pytest.raises(TypeError, match="got int"):
        nn.Sequential(3)


def test_tokenizers(tmp_path):
    t = nn.Tokenizer.train_characters(TEXT)
    assert t.decode(t.encode("to be")) == "to be" and len(t) == t.size
    path = tmp_path / "tokenizer.json"
    t.save(path)
    assert nn.Tokenizer.load(path).encode("or") == t.encode("or")
    assert nn.Tokenizer.bytes().encode("é") == [0xC3, 0xA9] and nn.Tokenizer.bytes().decode([0xC3]) == "\ufffd"
    bpe = nn.Tokenizer.train_bpe(TEXT, vocabulary_size=270)
    assert bpe.decode(bpe.encode("to be or")) == "to be or" and len(bpe.encode("to be or")) < 8 and bpe.id("zzz") is None


@pytest.fixture(scope="module")
def trained():
    tokenizer = nn.Tokenizer.train_characters(TEXT)
    data = nn.TokenData(TEXT, tokenizer, context=16, seed=1)
    model = nn.GPT(vocabulary=tokenizer.size, context=16, layers=1, heads=2, width=32).build(seed=1)
    optimizer = nn.AdamW(model.parameters())
    for step in range(150):
        tokens, targets = data.train(step, 12)
        loss = nn.token_loss(model(tokens), targets)
        loss.backward()
        optimizer.step(1e-2)
    return model, tokenizer, loss.item()


def test_a_language_model_learns_and_speaks(trained):
    model, tokenizer, loss = trained
    assert loss < 0.5
    spoken = nn.Pretrained(model, tokenizer)
    assert "".join(spoken.generate("to be or", length=7, temperature=0)) == " not to"
    many = ["".join(p) for p in zip(*spoken.generate_many(["to be or", "that is"], length=8, temperature=0))]
    assert many == [" not to ", " the que"]
    assert list(spoken.generate("to be or", stops=["not"], temperature=0)) == [" "]
    first = "".join(spoken.generate("to", length=12, temperature=1.5, seed=3))
    assert first == "".join(spoken.generate("to", length=12, temperature=1.5, seed=3))
    refused(lambda: list(spoken.generate("", length=1)), "empty")
    with pytest.raises(TypeError, match="a list of prompts"):
        list(spoken.generate_many("to be", length=1))
    with pytest.raises(TypeError, match="no parameter 'bogus'; how tokens are chosen is said by temperature.* length and stops"):
        list(spoken.generate("to be", bogus=1))


def test_texts_that_are_generated_by_turns(trained):
    model, tokenizer, _ = trained
    spoken = nn.Pretrained(model, tokenizer)
    wanted = ["".join(spoken.generate(p, length=7, temperature=0)) for p in ("to be or", "that is")]
    first, second = (spoken.generate(p, length=7, temperature=0) for p in ("to be or", "that is"))
    by_turns = list(zip(first, second))
    assert ["".join(pieces) for pieces in zip(*by_turns)] == wanted == [" not to", " the qu"]


def test_texts_follow_the_weights(trained):
    model, tokenizer, _ = trained
    spoken, before = nn.Pretrained(model, tokenizer), {n: t.clone() for n, t in model.state_dict().items()}
    said = "".join(spoken.generate("to be or", length=7, temperature=0))
    model.load_state_dict({n: t * -1 for n, t in before.items()})
    assert "".join(spoken.generate("to be or", length=7, temperature=0)) != said
    model.load_state_dict(before)
    assert "".join(spoken.generate("to be or", length=7, temperature=0)) == said


def test_decoders(trained):
    model, tokenizer, _ = trained
    decoder = nn.Decoder(model)
    decoder.read([tokenizer.encode("to be")])
    with weft.no_grad():
        logits = model(weft.tensor([tokenizer.encode("to be")], dtype="i32"))
    np.testing.assert_allclose(decoder.scores().numpy(), logits[0, -1].numpy(), rtol=1e-4, atol=1e-4)
    decoder.rewind(0, 2)
    refused(lambda: decoder.read([[0] * 40]), "room for 16")


def test_a_folder_of_hugging_faces(tmp_path):
    import pathlib
    import shutil

    source = pathlib.Path(__file__).resolve().parents[2] / "conformance" / "data" / "hf" / "qwen3"
    folder = tmp_path / "model"
    shutil.copytree(source, folder)
    nn.Tokenizer.bytes().save(str(folder / "tokenizer.json"))
    model = weft.from_pretrained(folder)
    assert "Llama" in repr(model)
    assert len(list(model.generate([1, 2, 3], length=4, temperature=0))) <= 4
    with pytest.raises(weft.Unavailable):
        weft.from_pretrained(tmp_path)


def test_runs_are_taken_up_again_to_the_same_bits(tmp_path):
    tokenizer = nn.Tokenizer.train_characters(TEXT)
    data = nn.TokenData(TEXT, tokenizer, context=16, seed=1)
    config = nn.GPTConfig(context=16, layers=1, heads=2, width=16)

    def begun():
        return nn.Run(config, tokenizer, schedule=nn.Schedule(rate=1e-2, warmup=2), steps=8, batch=4)

    run = begun()
    trainer = nn.Trainer(run, data)
    whole = [trainer.step() for _ in range(8)]
    assert whole[-1] < whole[0] and run.steps_taken == 8 and isinstance(run.model, nn.GPT)
    first = begun()
    half = nn.Trainer(first, data)
    losses = [half.step() for _ in range(4)]
    first.save(tmp_path)
    again = nn.Run.load(tmp_path)
    rest = nn.Trainer(again, data)
    assert losses + [rest.step() for _ in range(4)] == whole
    assert rest.validate(8).perplexity > 1 and nn.evaluate(again.model, tokenizer.encode(TEXT[:200])).tokens > 100
    with pytest.raises(weft.Unavailable):
        nn.Run.load(tmp_path / "nowhere")


def test_an_evaluation_is_the_same_in_parts_and_ends_by_control_c():
    tokenizer = nn.Tokenizer.bytes()
    model = nn.GPT(vocabulary=256, context=8, layers=1, heads=1, width=8).build(seed=1)
    for length in (2, 9, 16, 17, 18, 50, 65):
        ids = tokenizer.encode(TEXT)[:length]
        whole, parts = nn.evaluate(model, ids, 1000), nn.evaluate(model, ids, 2)
        assert whole.tokens == parts.tokens == length - 1 and abs(whole.loss - parts.loss) < 1e-5
    refused(lambda: nn.evaluate(model, ids, 0), "1 row")
    refused(lambda: nn.evaluate(model, ids[:1]), "2 tokens")
    seen = []

    def stop(*_):
        seen.append(1)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    begin = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            nn.evaluate(model, tokenizer.encode(TEXT) * 100, 1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen and time.perf_counter() - begin < 3  # all of it takes much longer


def test_what_is_set_in_a_module():
    class Grown(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.losses, self.scale = [], [], nn.Parameter(2)
            self.layers.append(nn.Linear(2, 2))
            self.losses.append(0.5)

    model = Grown().build()
    assert [n for n, _ in model.named_parameters()] == ["layers.0.weight", "layers.0.bias", "scale"]
    model.layers.append(weft.relu)
    with pytest.raises(TypeError, match="'layers' holds modules, and 'layers.1' is a builtin_function_or_method"):
        model.parameters()
    with pytest.raises(TypeError, match="Grown.scale is a parameter: it takes a Tensor, got int"):
        model.scale = 3

    class Early(nn.Module):
        def __init__(self):
            self.part = nn.Linear(2, 2)

    with pytest.raises(AttributeError, match=r"Early.part is set before super\(\).__init__\(\)"):
        Early()


def test_optimisers_of_tensors_without_modules():
    x = weft.ones(2, requires_grad=True)
    optimizer = nn.SGD([x])
    (x * x).sum().backward()
    optimizer.step(0.25)
    assert x.tolist() == [0.5, 0.5] and x.grad is None
    with pytest.raises(TypeError, match="takes a list of parameters, got one Tensor"):
        nn.SGD(x)
    with pytest.raises(TypeError, match="must be a Tensor, got int"):
        nn.AdamW([1])
