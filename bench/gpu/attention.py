"""Times cuDNN's attention through PyTorch at the sizes of attention.cu: forward and backward, bf16."""
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def median_ms(run, times=15):
    run()
    at = [torch.cuda.Event(enable_timing=True) for _ in range(times + 1)]
    for i, event in enumerate(at):
        event.record()
        if i < times:
            run()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in zip(at, at[1:]))


def measure(batch, heads, seq, dim, causal):
    shape = (batch, heads, seq, dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16).requires_grad_() for _ in range(3))
    dy = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    flops = 4 * batch * heads * seq * seq * dim / (2 if causal else 1)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        with torch.no_grad():
            forward = median_ms(lambda: scaled_dot_product_attention(q, k, v, is_causal=causal))
        y = scaled_dot_product_attention(q, k, v, is_causal=causal)
        backward = median_ms(lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True))
    print(
        f"cuDNN {batch} x {heads} x {seq} x {dim} {'causal' if causal else 'full'}: "
        f"forward {forward:.4f} ms {flops / forward * 1e-9:.1f} TFLOP/s, "
        f"backward {backward:.4f} ms {2.5 * flops / backward * 1e-9:.1f} TFLOP/s",
        flush=True,
    )


print(f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
for causal in (True, False):
    for seq in (1024, 4096, 16384):
        measure(16384 // seq, 16, seq, 128, causal)
measure(32, 12, 1024, 64, True)
measure(8, 12, 4096, 64, True)
