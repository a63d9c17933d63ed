"""Graphs of one node or a few, for scripts/import_oracle: (name, function or module, inputs). A function makes an input anew."""
import torch
from torch import nn
from torch.nn import functional as F

F64 = torch.float64


def short(t):
    """A few binary digits, whose decimal ones are few, too."""
    return (t * 64).round() / 64


def x(*shape):
    return lambda: short(torch.randn(shape, dtype=F64))


def positive(*shape):
    return lambda: short(torch.rand(shape, dtype=F64) + 0.25)


def half(*shape):
    return lambda: torch.randn(shape).to(torch.bfloat16)


def whole(*shape, low=-9, high=9, dtype=torch.int64):
    return lambda: torch.randint(low, high, shape, dtype=dtype)


def mask(*shape):
    return lambda: torch.rand(shape) > 0.4


class Normalised(nn.Module):
    """A convolution without a bias, before statistics that are not 0 and 1."""

    def __init__(self, convolution=True):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=False, dtype=F64) if convolution else nn.Identity()
        self.norm = nn.BatchNorm2d(4, dtype=F64).eval()
        with torch.no_grad():
            for t in (self.norm.running_mean, self.norm.running_var, self.norm.weight, self.norm.bias):
                t.copy_(torch.rand(4) + 0.5)

    def forward(self, image):
        return F.relu(self.norm(self.conv(image)))


class Counter(nn.Module):
    """A buffer that each call updates."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3, dtype=F64))

    def forward(self, t):
        self.seen += t
        return self.seen * 2


class Constants(nn.Module):
    """Tensors that the code makes: a lifted constant."""

    def forward(self, t):
        return t * torch.tensor([1.0, -2.0, float("inf")], dtype=F64)


def rope(t, position, theta):
    rate = 1.0 / theta ** (torch.arange(0, 8, 2, dtype=torch.float32) / 8)
    angle = torch.outer(torch.tensor([float(position), position + 1.0]), rate)
    cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    turned = torch.cat([-t[..., 4:], t[..., :4]], -1)
    return t * cos.to(t.dtype) + turned * sin.to(t.dtype)


def rms_norm(t, epsilon):
    return t * torch.rsqrt(t.pow(2).mean(-1, keepdim=True) + epsilon)


def written(t, write):
    t = t.clone()
    write(t)
    return t


# What the first system of this format computes wrong: /appendix E/ of what is known of it.
REPORTED = [
    ("div_by_number", lambda a: a / 8, (x(3, 4),)),
    ("add_alpha", lambda a, b: torch.add(a, b, alpha=-1), (x(3, 4), x(3, 4))),
    ("softmax_first_axis", lambda a: a.softmax(0), (x(4, 8),)),
    ("cat_of_three", lambda a, b, c: torch.cat([a, b, c], 1), (x(2, 3), x(2, 1), x(2, 4))),
    ("conv_dilated", lambda a, w: F.conv2d(a, w, dilation=2), (x(1, 2, 8, 8), x(3, 2, 3, 3))),
    ("addmm", torch.addmm, (x(5), x(2, 3), x(3, 5))),
    ("matmul_of_3_and_2_axes", torch.matmul, (x(4, 2, 3), x(3, 5))),
    ("float_to_integer", lambda a: (a * 3).to(torch.int64), (x(7),)),
    ("add_row", torch.add, (x(4, 8), x(8))),
    ("conv_then_batch_norm", Normalised(), (x(1, 3, 6, 6),)),
    ("conv_of_two_images", lambda a, w: F.conv2d(a, w, padding=1), (x(2, 3, 5, 5), x(4, 3, 3, 3))),
    ("batch_norm_alone", Normalised(False), (x(2, 4, 3, 3),)),
    ("add_of_12_heads", torch.add, (x(1, 12, 3, 2), x(1, 12, 3, 2))),
    ("rms_norm_epsilon", lambda a: rms_norm(a * 1e-3, 1e-5), (x(3, 16),)),
    ("transpose_from_the_end", lambda a: a.transpose(-2, -1) * 2, (x(2, 3, 4),)),
    ("masked_softmax_of_50", lambda a, m: (a + m).softmax(-1),
     (x(2, 3, 50), lambda: torch.zeros(1, 50, dtype=F64).masked_fill(torch.arange(50) % 3 == 0, -1e9))),
    ("row_that_is_all_masked", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
     (x(1, 2, 3, 4), x(1, 2, 5, 4), x(1, 2, 5, 4),
      lambda: torch.tensor([[True] * 5, [False] * 5, [True, False, True, False, True]]).view(1, 1, 3, 5))),
    ("attention_of_many_keys", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (x(1, 1, 1, 2), x(1, 1, 200, 2),
                                                                                         x(1, 1, 200, 2))),
    ("rope_far_out", lambda a: rope(a, 30000, 1e6), (x(1, 2, 2, 8),)),
    ("rope_far_out_in_bf16", lambda a: rope(a, 30000, 1e6), (half(1, 2, 2, 8),)),
    ("large_token_id", lambda ids, table: F.embedding(ids % 7 + (ids - ids % 7) // 151643, table),
     (lambda: torch.tensor([[151643, 3, 70000]]), x(9, 4))),
    ("conv_in_groups", lambda a, w, b: F.conv2d(a, w, b, groups=2), (x(2, 4, 5, 5), x(6, 2, 3, 3), x(6))),
    ("lifted_constant", Constants(), (x(2, 3),)),
    ("intermediate_that_is_an_output", lambda a: (a.relu(), -a.relu(), a.relu() + a), (x(3, 4),)),
    ("softmax_with_dtype", lambda a: a.softmax(-1, dtype=torch.float32), (half(3, 5),)),
]

FORMAT = [
    ("open_slice", lambda a: a[:, 2:], (x(3, 5),)),
    ("negative_slice", lambda a: a[:, -3:-1], (x(3, 5),)),
    ("stepped_slice", lambda a: a[1::2, ::3], (x(5, 7),)),
    ("size_from_the_others", lambda a: a.view(2, -1), (x(4, 3),)),
    ("empty_cache", lambda a, c: torch.cat([c, a], -2), (x(1, 2, 3, 4), x(0))),
    ("cat_of_40", lambda *a: torch.cat(a), tuple(x(1, 2) for _ in range(40))),
    ("infinite_fill", lambda a, m: a.masked_fill(m, float("-inf")).softmax(-1), (x(3, 4), lambda: torch.eye(3, 4) > 0)),
    ("integer_and_float", lambda a, b: a + b, (whole(3), x(3))),
    ("integer_and_number", lambda a: (a * 2, a * 2.5, a / 2, a // 2, a % 3), (whole(6),)),
    ("scalar_tensor_promotes_by_kind", lambda a, b: a * b, (half(3), lambda: torch.tensor(1.5))),
    ("scalar_tensor_of_floats_and_integers", lambda a, b: a * b, (whole(3), lambda: torch.tensor(1.5))),
    ("bool_arithmetic", lambda a, b: (a + b, a * b, a.sum(), a & ~b), (mask(5), mask(5))),
    ("half_and_small_number", lambda a: a * 1e-9 + 1e-3, (half(5),)),
    ("narrow_integers_compared", lambda a, b: (a == b, a < 3), (whole(5, low=0, dtype=torch.uint8),
                                                                 whole(5, low=0, dtype=torch.uint8))),
    ("output_twice", lambda a: (a.exp(), a.exp()), (x(3),)),
    ("input_as_output", lambda a, b: (b, a + 1), (x(3), x(2))),
    ("layer_norm_without_weight", lambda a: F.layer_norm(a, (4,)), (x(3, 4),)),
    ("layer_norm_of_two_axes", lambda a, w, b: F.layer_norm(a, (3, 4), w, b, 1e-3), (x(2, 3, 4), x(3, 4), x(3, 4))),
    ("dropout_in_eval", nn.Dropout(0.5).eval(), (x(3),)),
    ("counter", Counter(), (x(3),)),
]

IN_PLACE = [
    ("add_in_place", lambda a, b: written(a, lambda t: t.add_(b)), (x(3, 4), x(4))),
    ("write_to_a_slice", lambda a, b: written(a, lambda t: t[:, 1:3].copy_(b)), (x(3, 4), x(3, 2))),
    ("write_to_every_other", lambda a: written(a, lambda t: t[::2].mul_(3)), (x(5, 2),)),
    ("write_to_one", lambda a, b: written(a, lambda t: t[1].add_(b)), (x(3, 4), x(4))),
    ("write_through_views", lambda a: written(a, lambda t: t.view(2, 6).t()[1].zero_()), (x(3, 4),)),
    ("write_to_a_chunk", lambda a: written(a, lambda t: t.chunk(2, -1)[1].exp_()), (x(3, 4),)),
    ("write_to_unbound", lambda a: written(a, lambda t: t.unbind(1)[2].fill_(7)), (x(3, 4),)),
    ("view_reads_the_write", lambda a: (lambda t, v: (t.mul_(2), v + 1)[1])(*(lambda t: (t, t[:, 1]))(a.clone())), (x(3, 4),)),
    ("relu_in_place", lambda a: F.relu(a + 1, inplace=True) * 2, (x(3, 4),)),
    ("write_to_a_diagonal", lambda a: written(a, lambda t: t.diagonal(-1).fill_(7)), (x(4, 3),)),
    ("copy_of_a_number", lambda a: written(a, lambda t: t[0].fill_(2.5)), (x(2, 2),)),
    ("index_put_in_place", lambda a, i, v: written(a, lambda t: t.index_put_((i,), v)),
     (x(4, 3), lambda: torch.tensor([2, -4]), x(2, 3))),
    ("write_to_a_cast", lambda a: written(a, lambda t: t.to(torch.float32).zero_()), (x(3),)),
]

MOVES = [
    ("permute", lambda a: a.permute(2, 0, -2) + 0, (x(2, 3, 4),)),
    ("movedim", lambda a: a.movedim(0, -1) + 0, (x(2, 3, 4),)),
    ("swapaxes", lambda a: a.swapaxes(0, -1) + 0, (x(2, 3, 4),)),
    ("reversed_axes", lambda a: a.permute(*range(a.ndim - 1, -1, -1)) + 0, (x(2, 3, 4),)),
    ("squeeze", lambda a: (a.squeeze() + 0, a.squeeze(0) + 0, a.squeeze((0, 2)) + 0), (x(1, 3, 1),)),
    ("expand", lambda a: a.expand(4, -1, 3) + 0, (x(2, 1),)),
    ("flatten_unflatten", lambda a: a.flatten(1).unflatten(1, (2, -1)) + 0, (x(2, 4, 3),)),
    ("split", lambda a: [t * 2 for t in a.split(2, 1)], (x(2, 5),)),
    ("split_sizes", lambda a: [t * 2 for t in a.split([1, 3, 1], -1)], (x(2, 5),)),
    ("chunk", lambda a: [t * 2 for t in a.chunk(3)], (x(7, 2),)),
    ("tensor_split", lambda a: [t * 2 for t in a.tensor_split(3)], (x(7, 2),)),
    ("unbind", lambda a: [t * 2 for t in a.unbind(1)], (x(2, 3),)),
    ("meshgrid", lambda a, b, c: (*torch.meshgrid(a, b, c, indexing="ij"), *torch.meshgrid(a, b, c, indexing="xy")), (x(2), x(3), x(4))),
    ("stack", lambda a, b: torch.stack([a, b], -1), (x(2, 3), x(2, 3))),
    ("select_narrow", lambda a: (a.select(1, -1) * 2, a.narrow(0, 1, 2) * 2), (x(4, 3),)),
    ("repeat", lambda a: (a.repeat(2, 1, 3), torch.tile(a, (2,))), (x(2, 3),)),
    ("repeat_interleave", lambda a: (a.repeat_interleave(3, 1), a.repeat_interleave(2)), (x(2, 3),)),
    ("flip_roll", lambda a: (a.flip(0, -1), a.roll(2, 1), a.roll(-4), a.roll((1, -1), (0, 1))), (x(3, 4),)),
    ("diagonals", lambda a: (a.diagonal(1) + 0, a.diagonal(0, 2, 0) + 0, a.diagonal(-1, 1, 2) + 0), (x(3, 4, 5),)),
    ("triangles", lambda a: (a.tril(), a.triu(1), a.tril(-1)), (x(4, 5),)),
    ("pad_modes", lambda a: (F.pad(a, (1, 2), value=0.5), F.pad(a, (2, 1), "reflect"), F.pad(a, (1, 3), "replicate"),
                             F.pad(a, (2, 1), "circular"), F.pad(a, (-1, 1))), (x(1, 2, 5),)),
    ("pad_of_two_axes", lambda a: (F.pad(a, (1, 0, 2, 1)), F.pad(a, (1, 1, 2, 0), "reflect")), (x(1, 2, 4, 3),)),
    ("pixel_shuffle", lambda a: F.pixel_shuffle(a, 2), (x(1, 8, 2, 3),)),
]

INDICES = [
    ("embedding", F.embedding, (whole(2, 3, low=0), x(9, 4))),
    ("gather", lambda a, i: a.gather(1, i), (x(3, 4), whole(2, 5, low=0, high=4))),
    ("index_select", lambda a, i: a.index_select(-1, i), (x(3, 4), whole(2, low=0, high=4))),
    ("index_one", lambda a, i: a[i], (x(4, 3), whole(2, 2, low=-4, high=4))),
    ("index_later_axis", lambda a, i: a[:, :, i], (x(2, 3, 4), whole(2, low=-4, high=4))),
    ("index_two", lambda a, i, j: a[i, j], (x(4, 3, 2), whole(2, low=0, high=4), whole(2, low=-3, high=3))),
    ("index_two_apart", lambda a, i, j: a[i, :, j], (x(4, 3, 5), whole(2, 1, low=0, high=4), whole(2, low=0, high=5))),
    ("index_two_inner", lambda a, i, j: a[:, i, j], (x(2, 3, 5), whole(2, 1, low=0, high=3), whole(4, low=0, high=5))),
    ("index_put", lambda a, i, j, v: (a.index_put((i, j), v), a.index_put((j,), v, accumulate=True)),
     (x(4, 4), lambda: torch.tensor([0, 3]), lambda: torch.tensor([1, -2]), x())),
    ("index_put_inner", lambda a, i, v: torch.ops.aten.index_put(a, [None, i], v), (x(2, 4, 3), lambda: torch.tensor([2, 0]),
                                                                                  x(2, 2, 3))),
    ("index_copy_add_fill", lambda a, i, s: (a.index_copy(1, i, s), a.index_add(1, i, s, alpha=2), a.index_fill(1, i, 3)),
     (x(2, 4), lambda: torch.tensor([3, 1]), x(2, 2))),
    ("scatter", lambda a, i, s: (a.scatter(1, i, s), a.scatter(0, i % 2, 2.5), a.scatter_add(1, i, s)),
     (x(2, 4), lambda: torch.tensor([[0, 2, 1, 3], [3, 1, 0, 2]]), x(2, 4))),
    ("scatter_reduce", lambda a, i, s: [a.scatter_reduce(1, i, s, how, include_self=own) for how in ("sum", "mean") for own in (True, False)],
     (x(2, 4), lambda: torch.tensor([[0, 2, 0, 0, 3], [1, 1, 1, 1, 1]]), x(2, 5))),
    ("scatter_extremes", lambda a, i, s: [a.scatter_reduce(d, i % 2 if d == 0 else i, s, how, include_self=own)
                                          for how in ("amax", "amin", "prod") for own in (True, False) for d in (0, 1)],
     (x(2, 5), lambda: torch.tensor([[0, 2, 0, 0, 3], [1, 1, 1, 1, 1]]), x(2, 5))),
    ("scatter_extremes_of_no_number", lambda a, i, s: (a.scatter_reduce(0, i, s, "amax"), a.scatter_reduce(0, i, s, "amin", include_self=False)),
     (lambda: torch.tensor([0.5, float("nan"), 1, -1], dtype=F64), lambda: torch.tensor([0, 0, 1, 2, 2, 2]),
      lambda: torch.tensor([float("nan"), 3, 1, float("inf"), -2, float("-inf")], dtype=F64))),
    ("scatter_extremes_of_integers", lambda a, i, s: [a.scatter_reduce(1, i, s, how, include_self=own)
                                                      for how in ("amax", "amin", "prod", "mean", "sum") for own in (True, False)],
     (whole(2, 4), lambda: torch.tensor([[0, 2, 0, 0, 3], [1, 1, 1, 1, 1]]), whole(2, 5))),
    ("scatter_extremes_of_bytes", lambda a, i, s: [a.scatter_reduce(0, i, s, how) for how in ("amax", "amin")],
     (whole(4, low=0, high=255, dtype=torch.uint8), lambda: torch.tensor([0, 2, 0, 3, 3]), whole(5, low=0, high=255, dtype=torch.uint8))),
    ("scatter_with_reduce", lambda a, i, s: (a.scatter(1, i, s, reduce="add"), a.scatter(1, i, s, reduce="multiply"),
                                             a.scatter(1, i, 2.0, reduce="multiply")),
     (x(2, 4), lambda: torch.tensor([[0, 2], [1, 3]]), x(2, 2))),
    ("nonzero_static", lambda a: (torch.nonzero_static(a, size=5), torch.nonzero_static(a > 0, size=20, fill_value=-7),
                                  torch.nonzero_static(a, size=0)), (whole(3, 2, 2, low=-1, high=2),)),
    ("as_strided", lambda a: (a.as_strided((2, 3), (4, 1)), a.as_strided((3, 3), (1, 2), 2), a.t().contiguous().as_strided((4,), (3,), 1)),
     (x(3, 4),)),
    ("write_through_strides", lambda a, b: written(a, lambda t: t.contiguous().as_strided((2, 2), (5, 2), 1).copy_(b)), (x(3, 4), x(2, 2))),
    ("masked_scatter", lambda a, m, s: (a.masked_scatter(m, s), a.masked_scatter(m[:, :1], s)), (x(3, 4), mask(3, 4), x(3, 5))),
    ("scatters_of_parts", lambda a, s: (torch.slice_scatter(a, s, 1, 1, 4, 2), torch.select_scatter(a, s[:, 0], 1, -1)),
     (x(3, 5), x(3, 2))),
]

FOLDS = [
    ("sums", lambda a: (a.sum(), a.sum(1), a.sum((0, -1), keepdim=True), a.sum(0, dtype=torch.float32)), (x(2, 3, 4),)),
    ("means", lambda a: (a.mean(), a.mean((0, 2)), a.mean(-1, keepdim=True)), (x(2, 3, 4),)),
    ("integer_sums", lambda a: (a.sum(), a.prod(0), a.cumsum(1), a.any(1), a.all(), a.count_nonzero(1)),
     (whole(3, 4, low=-1, high=2, dtype=torch.int32),)),
    ("extremes", lambda a: (a.amax((0, 1)), a.amin(1, True), a.max(), a.min(), *a.max(1), *a.min(0, True)), (x(3, 4),)),
    ("positions", lambda a: (a.argmax(), a.argmin(1), a.argmax(0, True), a.argsort(1)), (x(3, 4),)),
    ("variances", lambda a: (a.var(), a.var(1), a.std(0, correction=0), a.var((0, 1), keepdim=True), *torch.var_mean(a, 1)),
     (x(3, 4),)),
    ("deviations_and_means", lambda a: (*torch.std_mean(a, 1), *torch.std_mean(a, (0, 1), correction=0, keepdim=True)), (x(3, 4),)),
    ("norms", lambda a: (a.norm(), a.norm(1, -1), torch.linalg.vector_norm(a, float("inf"), 0)),
     (x(3, 4),)),
    ("topk_sort", lambda a: (*a.topk(2, 1), *a.topk(2, 0, largest=False), *a.sort(1, True)), (x(3, 4),)),
    ("softmaxes", lambda a: (a.softmax(1), a.log_softmax(0), a.logsumexp((0, 1))), (x(3, 4),)),
    ("running", lambda a: (a.cumsum(0), a.diff(), a.diff(2, 0)), (x(4, 5),)),
    ("without_axes", lambda a: (a.sum(), a.softmax(0), a.max(), a.argmax(), a.cumsum(0)), (lambda: torch.tensor(0.5, dtype=F64),)),
]

NUMBERS = [
    ("functions", lambda a: (a.exp(), a.sin(), a.cos(), a.tan(), a.tanh(), a.sigmoid(), a.erf(), a.expm1(), a.sinh(), a.cosh(),
                             a.asinh(), a.erfc(), a.exp2(), a.abs(), a.neg(), a.sign(), a.square()), (x(7),)),
    ("functions_of_positive", lambda a: (a.log(), a.log1p(), a.log2(), a.log10(), a.sqrt(), a.rsqrt(), a.reciprocal(),
                                         (a + 1).acosh(), (a / 2).atanh()), (positive(7),)),
    ("angles", lambda a: (a.atan(), (a / 8).asin(), (a / 8).acos()), (lambda: torch.tensor([-8, -1.5, -1, -0.25, 0, 1e-9, 0.5, 1, 3, 8],
                                                                                           dtype=F64),)),
    ("angles_of_no_number", lambda a: (a.atan(), a.asin(), a.acos()),
     (lambda: torch.tensor([float("inf"), float("-inf"), float("nan"), 2.0, 1.0, -1.0], dtype=F64),)),
    ("angles_of_points", torch.atan2, (lambda: torch.tensor([[0.0], [-0.0], [1.5], [-2.0], [1e-9], [float("inf")]], dtype=F64),
                                       lambda: torch.tensor([0.0, -0.0, 1.0, -3.0, float("-inf"), float("nan")], dtype=F64))),
    ("angles_of_integers_and_halves", lambda a, b: (a.atan(), b.atan(), torch.atan2(a, a + 1)), (whole(5), half(5))),
    ("numbers_for_no_numbers", lambda a: (a.nan_to_num(), a.nan_to_num(1.5, 2.0, -3.0), torch.nan_to_num(a, neginf=-7)),
     (lambda: torch.tensor([float("inf"), float("-inf"), float("nan"), 2.0, -1.0, 0.0], dtype=F64),)),
    ("rounding", lambda a: (a.floor(), a.ceil(), a.round(), a.trunc()), (lambda: torch.tensor([-1.5, -0.4, 0.5, 2.5, 7], dtype=F64),)),
    ("activations", lambda a: (F.relu(a), F.gelu(a), F.gelu(a, approximate="tanh"), F.silu(a), F.relu6(a * 5), F.hardtanh(a),
                               F.hardswish(a * 3), F.hardsigmoid(a * 3), F.leaky_relu(a, 0.2), F.elu(a, 0.7), F.selu(a), F.celu(a, 2.0),
                               F.softplus(a, 2.0), F.mish(a), F.softsign(a), F.logsigmoid(a), F.threshold(a, 0.1, -1.0)), (x(9),)),
    ("gates", lambda a, w: (F.glu(a), F.prelu(a, w), a[:, :3] * F.silu(a[:, 3:])), (x(2, 6), x(6))),
    ("powers", lambda a: (a**2, a**3, a**0.5, a**-0.5, a**-1, a**-2, a**1.7, 2.5**a, a**a, a**0), (positive(5),)),
    ("integer_powers", lambda a: (a**2, a**5, a**0), (whole(6),)),
    ("divisions", lambda a, b: (a / b, torch.div(a, b, rounding_mode="floor"), torch.div(a, b, rounding_mode="trunc"), a % b,
                                torch.fmod(a, b), a // b), (lambda: torch.tensor([7.5, -7.5, 3.0, -0.1], dtype=F64),
                                                            lambda: torch.tensor([2.0, 2.0, -1.5, 1.0], dtype=F64))),
    ("integer_divisions", lambda a, b: (a / b, a // b, torch.div(a, b, rounding_mode="trunc"), a % b, torch.fmod(a, b)),
     (lambda: torch.tensor([7, -7, 7, -7]), lambda: torch.tensor([2, 2, -2, -2]))),
    ("sums_of_three", lambda a, b, c: (torch.addcmul(a, b, c, value=0.5), torch.addcdiv(a, b, c.exp()), torch.lerp(a, b, 0.3),
                                       torch.lerp(a, b, c), torch.rsub(a, b), 1 - a), (x(4), x(4), x(4))),
    ("comparisons", lambda a, b: (a == b, a != b, a < b, a <= b, a > 0.5, a >= 0, a.maximum(b), a.minimum(b)),
     (whole(9, low=0, high=3), whole(9, low=0, high=3))),
    ("other_names", lambda a, b: (torch.greater(a, b), torch.less_equal(a, 1), torch.not_equal(a, b), torch.multiply(a, b),
                                  torch.subtract(a, b, alpha=2), torch.true_divide(a, b + 4), F.one_hot(a, 4)),
     (whole(5, low=0, high=3), whole(5, low=0, high=3))),
    ("logic", lambda a, b: (a & b, a | b, a ^ b, ~a, torch.logical_and(a, b), torch.logical_not(a), torch.logical_xor(a, b)),
     (whole(5), whole(5))),
    ("questions", lambda a: (a.isnan(), a.isinf(), a.isfinite()), (lambda: torch.tensor([1.0, float("nan"), float("-inf")], dtype=F64),)),
    ("clamps", lambda a, b: (a.clamp(-0.5, 0.5), a.clamp(min=0), a.clamp(max=0.1), torch.clamp(a, b, b + 1), a.clamp_min(0.2)),
     (x(6), x(6))),
    ("integer_clamp", lambda a: (a.clamp(-2, 3), a.clamp(min=0.5)), (whole(6),)),
    ("where", lambda m, a, b: (torch.where(m, a, b), torch.where(m, a, 0.5), torch.where(m, 1.0, b)), (mask(3, 1), x(3, 4), x(4))),
    ("casts", lambda a: (a.to(torch.int32), a.bool(), a.to(torch.bfloat16), a.half().float(), a.to(torch.uint8).float()), (positive(5),)),
    ("created", lambda a: (torch.arange(5), torch.arange(1, 8, 2.5), torch.arange(6, 0, -2), torch.full((2, 2), 7), torch.ones(2) * a,
                           torch.zeros_like(a), torch.full_like(a, 3.5), a.new_ones((2, 1)), torch.eye(2, 3), torch.linspace(-1, 1, 5)),
     (x(2),)),
]

PRODUCTS = [
    ("linear", F.linear, (x(2, 3, 4), x(5, 4), x(5))),
    ("linear_of_a_row", F.linear, (x(4), x(5, 4))),
    ("matmuls", lambda a, b, v: (a @ b, a @ v, v @ b, v @ v, torch.mm(a, b), torch.mv(a, v)), (x(3, 3), x(3, 3), x(3))),
    ("batched", lambda a, b: (torch.bmm(a, b), a.unsqueeze(1) @ b), (x(2, 3, 4), x(2, 4, 5))),
    ("baddbmm", lambda c, a, b: (torch.baddbmm(c, a, b, beta=0.5, alpha=2), torch.addmv(c[0, :, 0], a[0], b[0, :, 0])),
     (x(2, 3, 5), x(2, 3, 4), x(2, 4, 5))),
    ("einsum", lambda a, b: torch.einsum("bij, bkj -> bik", a, b), (x(2, 3, 4), x(2, 5, 4))),
    ("conv1d", lambda a, w, b: F.conv1d(a, w, b, stride=2, padding=1), (x(2, 3, 9), x(4, 3, 3), x(4))),
    ("conv_same", lambda a, w: F.conv2d(a, w, padding="same", dilation=2), (x(1, 2, 6, 5), x(3, 2, 2, 3))),
    ("conv3d", lambda a, w: F.conv3d(a, w, padding=(0, 1, 1)), (x(1, 2, 3, 4, 4), x(2, 2, 2, 3, 3))),
    ("conv_of_one_image", lambda a, w, b: F.conv2d(a, w, b), (x(2, 5, 5), x(3, 2, 2, 2), x(3))),
    ("conv_transpose", lambda a, w, b: F.conv_transpose2d(a, w, b, stride=2, padding=1, output_padding=1, groups=2),
     (x(1, 4, 3, 3), x(4, 3, 3, 3), x(6))),
    ("attention", lambda q, k, v: (F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True),
                                   F.scaled_dot_product_attention(q, k, v, scale=0.3)), (x(2, 2, 3, 4), x(2, 2, 5, 4), x(2, 2, 5, 6))),
    ("attention_with_a_float_mask", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
     (x(2, 2, 3, 4), x(2, 2, 5, 4), x(2, 2, 5, 4), x(3, 5))),
    ("distances", lambda a, b: [torch.ops.aten._cdist_forward(a, b, p, None) for p in (0.0, 1.0, 2.0, 3.0, float("inf"))],
     (x(2, 3, 4), x(2, 5, 4))),
    ("distances_in_a_list", lambda a: (torch.pdist(a), torch.ops.aten._pdist_forward(a, 1.0), torch.cdist(a, a[:2] + 1)), (x(5, 3),)),
    ("embedding_bags", lambda ids, at, table, w: (F.embedding_bag(ids, table, at), F.embedding_bag(ids, table, at, mode="sum", per_sample_weights=w),
                                                  F.embedding_bag(ids, table, at, mode="mean", padding_idx=2)),
     (whole(7, low=0), lambda: torch.tensor([0, 3, 3, 5]), x(9, 4), x(7))),
    ("columns_of_images", lambda a: (F.unfold(a, (2, 3), padding=1, stride=(1, 2)), F.unfold(a[0], 2, dilation=2)), (x(2, 3, 5, 6),)),
    ("images_of_columns", lambda a: (F.fold(a, (4, 5), (2, 3), padding=(1, 0), stride=(1, 2)), F.fold(a[0], (6, 6), (2, 3), dilation=(1, 2))),
     (x(2, 12, 10),)),
    ("sampled_images", lambda a, g: [F.grid_sample(a, g * 1.3, mode, padding, corners) for mode in ("bilinear", "nearest")
                                     for padding in ("zeros", "border") for corners in (True, False)],
     (x(2, 3, 4, 5), lambda: short(torch.rand(2, 3, 2, 2, dtype=F64) * 2 - 1))),
    ("attention_in_groups", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
     (x(1, 4, 3, 4), x(1, 2, 3, 4), x(1, 2, 3, 4))),
]

RECURRENT = [
    ("lstm", nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True, dtype=F64), (x(2, 3, 3),)),
    ("gru", nn.GRU(3, 4, 1, bias=False, dtype=F64), (x(3, 2, 3), x(1, 2, 4))),
]

NORMS = [
    ("group_norm", lambda a, w, b: F.group_norm(a, 2, w, b, 1e-3), (x(2, 4, 3), x(4), x(4))),
    ("instance_norm", lambda a: F.instance_norm(a), (x(2, 3, 5),)),
    ("rms_norm", lambda a, w: (F.rms_norm(a, (4,), w, 1e-3), F.rms_norm(a, (4,))), (x(3, 4), x(4))),
    ("batch_norm_of_the_batch", lambda a, w, b: torch.ops.aten._native_batch_norm_legit.no_stats(a, w, b, True, 0.1, 1e-3),
     (x(2, 3, 4), x(3), x(3))),
    ("batch_norm_legit", lambda a, w, b, m, v: torch.ops.aten._native_batch_norm_legit(a, w, b, m, v, False, 0.1, 1e-3)[0],
     (x(2, 3, 4), x(3), x(3), x(3), positive(3))),
    ("max_pool", lambda a: (F.max_pool2d(a, 3, 2, 1), F.max_pool2d(a, 2, ceil_mode=True), F.max_pool2d(a, 2, dilation=2)),
     (x(1, 2, 7, 6),)),
    ("max_pool_with_indices", lambda a: torch.ops.aten.max_pool2d_with_indices(a, [3, 3], [2, 2])[0], (x(1, 2, 7, 6),)),
    ("avg_pool", lambda a: (F.avg_pool2d(a, 3, 2, 1), F.avg_pool2d(a, 3, 2, 1, count_include_pad=False)), (x(1, 2, 7, 6),)),
    ("pools_wider_than_the_image", lambda a: (F.avg_pool2d(a, 9, ceil_mode=True), F.max_pool2d(a, (9, 2), ceil_mode=True),
                                              F.avg_pool2d(a, (12, 3), (3, 2), (5, 1), ceil_mode=True),
                                              F.avg_pool2d(a, (8, 4), ceil_mode=True, count_include_pad=False)), (x(1, 2, 5, 6),)),
    ("pools_of_one_axis", lambda a: (F.max_pool1d(a, 2), F.avg_pool1d(a, 3, 1)), (x(1, 2, 7),)),
    ("adaptive_pool", lambda a: (F.adaptive_avg_pool2d(a, (2, 3)), F.adaptive_avg_pool2d(a, 1), F.adaptive_avg_pool1d(a[0], 4)),
     (x(1, 2, 5, 7),)),
    ("nearest", lambda a: (F.interpolate(a, scale_factor=2), F.interpolate(a, size=(3, 5)), F.interpolate(a, scale_factor=(1.5, 0.6))),
     (x(1, 2, 4, 5),)),
    ("bilinear", lambda a: (F.interpolate(a, scale_factor=2, mode="bilinear"), F.interpolate(a, size=(3, 7), mode="bilinear"),
                            F.interpolate(a, size=(6, 6), mode="bilinear", align_corners=True)), (x(1, 2, 4, 5),)),
]

CASES = REPORTED + FORMAT + IN_PLACE + MOVES + INDICES + FOLDS + NUMBERS + PRODUCTS + RECURRENT + NORMS
