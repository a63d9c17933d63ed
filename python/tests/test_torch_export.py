"""weft.export, the program files that it writes, and what they keep of a model."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import weft  # noqa: E402
from torch import nn  # noqa: E402
from torch_models import GPT2, MODELS, ResNet18  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(1)
    torch.set_num_threads(2)


def close(got, want):
    torch.testing.assert_close(got, want, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize("name", MODELS)
def test_models(name, tmp_path):
    model, inputs = MODELS[name]()
    model.eval()
    program = weft.export(model, inputs, path=tmp_path / "m.weft")
    with torch.no_grad():
        close(program.run(*inputs), model(*inputs))
        close(weft.load(tmp_path / "m.weft", "reference").run(*inputs), model(*inputs))


def test_verify(tmp_path):
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    weft.export(model, (torch.randn(3, 4),), path=tmp_path / "m.weft")
    for backend in ("", "reference", "openmp"):
        rows = weft.verify(tmp_path / "m.weft", backend)
        assert [r["right"] for r in rows] == [True] and rows[0]["worst"] <= 1
    with pytest.raises(weft.Unavailable):
        weft.verify(tmp_path / "none.weft")
    weft.export(ResNet18(width=32).eval(), (torch.randn(1, 3, 64, 64),), path=tmp_path / "large.weft")
    with pytest.raises(weft.InvalidArgument, match="carries no tests"):
        weft.verify(tmp_path / "large.weft")


def test_verify_finds_what_is_wrong(tmp_path):
    weft.export(nn.Linear(4, 300), (torch.randn(3, 4),), path=tmp_path / "m.weft")
    with weft.on_backend("null"):
        junk = [weft.tensor([7.0] * 900) for _ in range(8)]
        del junk  # what memory holds that is given again
    wrong, = weft.verify(tmp_path / "m.weft", "null")  # which computes nothing
    assert not wrong["right"] and wrong["worst"] > 1 and wrong["wrong"].startswith("output linear: element ")


def test_an_input_may_be_a_result_more_than_once():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.tensor([3.0]))

        def forward(self, x):
            y = x * 2
            return x, y, x, self.w, y, self.w

    x = torch.randn(3)
    got = weft.export(Model(), (x,)).run(x)
    want = Model()(x)
    assert len(got) == 6
    for a, b in zip(got, want):
        close(a, b.detach())


def test_a_branch_is_named():
    class Model(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,))

    with pytest.raises(weft.Unsupported, match="cond: cond is no op of ATen"):
        weft.export(Model(), (torch.ones(3),))


def test_a_damaged_file_is_refused(tmp_path):
    weft.export(nn.Linear(4, 8), (torch.randn(3, 4),), path=tmp_path / "m.weft")
    data = bytearray((tmp_path / "m.weft").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "m.weft").write_bytes(data)
    with pytest.raises(weft.Error):
        weft.load(tmp_path / "m.weft")


def test_sizes_that_are_symbols_keep_their_names_and_bounds():
    class Model(nn.Module):
        def forward(self, x, y):
            return torch.cat([x.softmax(1), y[:, :2].expand(x.shape[0], 2)], 1).sum(0), x.new_zeros(x.shape[0] * 2 + 1)

    rows, columns = torch.export.Dim("rows", min=2, max=64), torch.export.Dim("columns", max=32)
    program = weft.export(Model(), (torch.randn(4, 5), torch.randn(1, 3)), dynamic_shapes={"x": {0: rows, 1: columns}, "y": None})
    assert program.inputs == [("x", "f32[rows, columns]"), ("y", "f32[1, 3]")]
    assert program.outputs[1][1] == "f32[rows*2+1]"
    for shape in ((2, 5), (64, 1), (7, 32)):
        x, y = torch.randn(shape), torch.randn(1, 3)
        close(program.run(x, y), Model()(x, y))
    with pytest.raises(weft.InvalidArgument, match="rows"):
        program.run(torch.randn(65, 5), torch.randn(1, 3))


def test_arguments_by_name_and_in_containers():
    class Model(nn.Module):
        def forward(self, x, pair, *, scale=None, table=None):
            return {"a": x @ pair[0] + pair[1], "b": (x * scale, table["w"].sum())}

    x, a, b = torch.randn(2, 3), torch.randn(3, 4), torch.randn(4)
    kwargs = {"scale": torch.tensor(2.0), "table": {"w": torch.ones(5)}}
    program = weft.export(Model(), (x, (a, b)), kwargs)
    want = Model()(x, (a, b), **kwargs)
    close(program.run(x, a, b, kwargs["scale"], kwargs["table"]["w"]), (want["a"], *want["b"]))
    with pytest.raises(TypeError, match="missing"):
        program.run(x, a)
    names = [name for name, _ in program.inputs]
    got = program.run(**dict(zip(names, (x, a, b, kwargs["scale"], kwargs["table"]["w"]))))
    close(got[0], want["a"])
    with pytest.raises(TypeError, match="not among the others: nothing"):
        program.run(x, nothing=1)


def test_a_buffer_that_is_written_is_a_state(tmp_path):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            self.seen[1:] += x[1:]
            return self.seen * 2

    program, model, x = weft.export(Counter(), (torch.ones(3),), path=tmp_path / "m.weft"), Counter(), torch.arange(3.0)
    for _ in range(3):
        close(program.run(x), model(x))
    close(torch.from_dlpack(program.state("seen")), model.seen)
    program.save(tmp_path / "later.weft")
    close(weft.load(tmp_path / "later.weft").run(x), model(x))


def test_weights_that_are_one_are_stored_once(tmp_path):
    model = GPT2(words=4096, width=64).eval()
    weft.export(model, (torch.arange(9)[None],), path=tmp_path / "m.weft")
    table, all_of_it = (sum(p.numel() * 4 for p in m.parameters()) for m in (model.words, model))  # each once
    assert all_of_it < (tmp_path / "m.weft").stat().st_size < all_of_it + table // 2  # and a test


def test_constants_dtypes_and_blocks_of_other_modes():
    class Model(nn.Module):
        def forward(self, x, i, m):
            table = torch.tensor([[1.0, float("inf")], [-2.0, float("nan")]])
            with torch.no_grad():
                y = x.half().bfloat16().double() * 3
            with torch.autocast("cpu", dtype=torch.bfloat16):
                z = x @ x.t()
            return table + x[:2, :2].clamp(max=0), y, z, i // 2, m.logical_not(), torch.full_like(i, 7)

    inputs = torch.randn(4, 4), torch.arange(-3, 3), torch.tensor([True, False])
    got, want = weft.export(Model(), inputs).run(*inputs), Model()(*inputs)
    assert [g.dtype for g in got] == [w.dtype for w in want]
    for g, w in zip(got, want):
        torch.testing.assert_close(g, w, equal_nan=True)


def test_what_can_not_be_imported_is_listed_with_its_nodes():
    class Model(nn.Module):
        def forward(self, x):
            return torch.linalg.inv(x), torch.nonzero(x)

    with pytest.raises(weft.Unsupported, match=r"(?s)linalg_inv.*: linalg_inv.*nonzero.*: nonzero"):
        weft.export(Model(), (torch.randn(3, 3),))
    with pytest.raises(weft.Unsupported, match="complex64"):
        weft.export(Spectrum(), (torch.randn(3, 8),))


class Spectrum(nn.Module):
    def forward(self, x):
        return torch.fft.rfft(x).abs()


def test_a_model_that_writes_to_its_input_is_refused():
    class Model(nn.Module):
        def forward(self, x, y):
            z = y.clone()
            z.view(-1)[1:].mul_(3)  # its own
            x.view(-1)[1:].mul_(2)
            return x + z

    with pytest.raises(weft.Unsupported, match="mul__1: it writes to the input 'x'"):
        weft.export(Model(), (torch.ones(3), torch.ones(3)))


def test_results_that_are_no_tensors_are_told():
    class Model(nn.Module):
        def forward(self, x):
            return x * 2, 3, None, x.shape[0]

    with pytest.warns(RuntimeWarning, match="leaves out: result 1 is 3; result 3 is s"):
        program = weft.export(Model(), (torch.ones(3),), dynamic_shapes=({0: torch.export.Dim("n")},))
    close(program.run(torch.ones(4)), 2 * torch.ones(4))


@pytest.mark.parametrize("what, error, words", [
    ((torch.ones(4),), weft.InvalidArgument, r"input input of .* is f32\[3\], got f32\[4\]"),
    ((torch.ones(3, dtype=torch.int64),), weft.InvalidArgument, "got i64"),
    ((torch.ones(3, dtype=torch.complex64),), weft.InvalidArgument, "no dtype has"),
    ((torch.ones(3).to_sparse(),), TypeError, "'input' is not dense: torch.sparse_coo"),
    (([1.0, 2, 3],), TypeError, "'input' is a list"),
    ((None,), TypeError, "'input' is a NoneType"),
    ((torch.ones(3),) * 2, TypeError, "takes 1 inputs .input., got 2"),
    ((torch.ones(3, device="meta"),), BufferError, "meta"),
])
def test_what_a_program_does_not_take(what, error, words):
    program = weft.export(nn.Tanh(), (torch.ones(3),))
    with pytest.raises(error, match=words):
        program.run(*what)
    close(program.run(torch.ones(6, requires_grad=True)[::2]), torch.ones(3).tanh())


def test_numpy_in_numpy_out():
    numpy = pytest.importorskip("numpy")
    program = weft.export(nn.Softmax(-1), (torch.randn(2, 3),))
    y = program.run(numpy.array([[1, 2, 3], [0, 0, 0]], "float32"))
    assert isinstance(y, numpy.ndarray)
    numpy.testing.assert_allclose(y.sum(-1), [1, 1], rtol=1e-6)
    turned = program.run(numpy.array([[3, 2, 1], [0, 1, 0]], "float32")[::-1, ::-1])
    numpy.testing.assert_array_equal(turned.argmax(-1), [1, 2])
    with pytest.raises(BufferError):
        program.run(numpy.ones((2, 3), object))
