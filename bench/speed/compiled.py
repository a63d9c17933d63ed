"""A training step of the GPT of torch_training_peer.cpp under torch.compile, one for each line that comes in.

    compiled.py OPERANDS THREADS     weft_speed starts it; OPERANDS is a JSON line of shapes and numbers, then raw f32 and i64

Says "ready" once it has compiled, "done" after each "step", and the losses of the first steps after "losses".
"""
import json
import sys

import torch
from torch.nn import functional as F


def read(path):
    with open(path, "rb") as file:
        head = json.loads(file.readline())
        tensors = []
        for shape, index in head["operands"]:
            count, dtype = 1, torch.int64 if index else torch.float32
            for d in shape:
                count *= d
            size = count * (8 if index else 4)
            tensors.append(torch.frombuffer(bytearray(file.read(size)), dtype=dtype).reshape(shape).clone())
    return tensors, head["numbers"]


class GPT(torch.nn.Module):
    """Parameters in the order of nn::parameters(); queries, keys and values become one product."""

    def __init__(self, x, heads, layers):
        super().__init__()
        weights = [x[0], x[1]]
        at = 2
        for _ in range(layers):
            b = x[at:at + 16]
            weights += [b[0], b[1], torch.cat([b[2], b[4], b[6]]), torch.cat([b[3], b[5], b[7]]), *b[8:]]
            at += 16
        self.w = torch.nn.ParameterList(weights + x[at:at + 2])
        self.heads, self.layers = heads, layers

    def forward(self, ids, targets):
        w = list(self.w)
        batch, seq = ids.shape
        width = w[0].shape[1]
        x = F.embedding(ids, w[0]) + w[1][:seq]
        for i in range(self.layers):
            n1w, n1b, qkvw, qkvb, ow, ob, n2w, n2b, uw, ub, dw, db = w[2 + 12 * i:14 + 12 * i]
            qkv = F.linear(F.layer_norm(x, (width,), n1w, n1b), qkvw, qkvb)
            q, k, v = (t.view(batch, seq, self.heads, -1).transpose(1, 2) for t in qkv.split(width, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + F.linear(y.transpose(1, 2).reshape(batch, seq, width), ow, ob)
            hidden = F.gelu(F.linear(F.layer_norm(x, (width,), n2w, n2b), uw, ub), approximate="tanh")
            x = x + F.linear(hidden, dw, db)
        scores = F.linear(F.layer_norm(x, (width,), w[-2], w[-1]), w[0])
        return F.cross_entropy(scores.view(-1, scores.shape[-1]), targets.view(-1))


def main():
    tensors, numbers = read(sys.argv[1])
    torch.set_num_threads(int(sys.argv[2]))
    heads, layers, rate, beta1, beta2, epsilon, decay = numbers
    ids, targets = tensors[-2:]
    model = GPT(tensors[:-2], int(heads), int(layers))
    optimizer = torch.optim.AdamW(model.parameters(), rate, (beta1, beta2), epsilon, decay, fused=True)
    loss_of = torch.compile(model)
    losses = []

    def step():
        loss = loss_of(ids, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if len(losses) < 8:
            losses.append(loss.item())

    step()
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "step\n":
            step()
            print("done", flush=True)
        elif line == "losses\n":
            print(" ".join(map(repr, losses)), flush=True)


if __name__ == "__main__":
    main()
