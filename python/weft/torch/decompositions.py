"""Ops that autograd is to write in smaller ones, since Weft imports those only."""

import functools

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from .. import _weft

aten = torch.ops.aten
# Those beside PyTorch's own list of what a backend of core ATen wants.
MORE = [
    aten._native_batch_norm_legit, aten._native_batch_norm_legit_functional, aten.native_batch_norm,
    aten.native_batch_norm_backward, aten.embedding_dense_backward, aten.native_layer_norm_backward,
    aten.native_group_norm_backward, aten._fused_rms_norm_backward, aten.nll_loss_forward, aten.nll_loss_backward,
    aten.nll_loss2d_forward, aten.nll_loss2d_backward, aten.threshold_backward, aten._softmax_backward_data,
    aten._log_softmax_backward_data, aten.gelu_backward, aten.silu_backward, aten.sigmoid_backward, aten.tanh_backward,
    aten.select_backward, aten.slice_backward, aten.mse_loss, aten.mse_loss_backward, aten.smooth_l1_loss,
    aten.smooth_l1_loss_backward, aten.huber_loss, aten.huber_loss_backward, aten.binary_cross_entropy,
    aten.binary_cross_entropy_backward, aten.hardtanh_backward, aten.hardswish_backward, aten.hardsigmoid_backward,
    aten.leaky_relu_backward, aten.elu_backward, aten.softplus_backward, aten.log_sigmoid_backward, aten.mish_backward,
    aten.glu_backward, aten.unfold_backward, aten.upsample_bilinear2d, aten.upsample_nearest2d, aten.index_add,
    aten.masked_fill, aten.addcmul, aten.addcdiv, aten.lerp, aten.xlogy, aten.logaddexp, aten.logit, aten.sinc,
    aten.std_mean, aten.var_mean, aten.frac, aten.trace, aten.special_entr,
    aten.nansum, aten.renorm, aten.heaviside, aten.rot90, aten.linspace, aten.logspace, aten.diag_embed,
    aten._unsafe_index, aten._unsafe_index_put, aten.floor_divide, aten.square, aten.ldexp, aten.dist, aten.isin,
    aten.narrow_copy, aten.view_copy, aten.permute_copy, aten.unbind_copy, aten.unfold, aten.unfold_copy, aten.bucketize,
    aten.adaptive_max_pool2d, aten.adaptive_max_pool3d, aten.upsample_linear1d, aten.upsample_bicubic2d, aten.upsample_trilinear3d,
]


@functools.cache
def imported():
    """The overloads of ATen that Weft imports."""
    found = set()
    for name in _weft.aten_ops():
        op, _, overload = name.partition(".")
        packet = getattr(aten, op, None)
        if packet is not None and overload in packet.overloads():
            found.add(getattr(packet, overload))
    return found


def unless(wrong, how):
    """A decomposition, but for results of dtypes that `wrong` names: these calls stay whole, for PyTorch."""
    @functools.wraps(how)
    def decompose(*args, dtype=None, **others):
        if dtype is not None and wrong(dtype):
            return NotImplemented
        return how(*args, dtype=dtype, **others)

    return decompose


# PyTorch's kernels round the ends to the dtype first, and its decompositions do not: of integers that is another number, and where the
# ends are exponents, another one in 16 bits.
ROUND_THEIR_ENDS = [
    (aten.linspace, lambda dtype: not dtype.is_floating_point),
    (aten.logspace, lambda dtype: dtype in (torch.float16, torch.bfloat16)),
]


@functools.cache
def decompositions():
    table = dict(core_aten_decompositions())
    table |= get_decompositions(MORE)
    for packet, wrong in ROUND_THEIR_ENDS:
        for overload in packet.overloads():
            if (op := getattr(packet, overload)) in table:
                table[op] = unless(wrong, table[op])
    training = {aten._native_batch_norm_legit.default, aten._native_batch_norm_legit.no_stats}
    return {op: how for op, how in table.items() if op not in imported() or op in training}
