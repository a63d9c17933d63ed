"""PyTorch's answers for ops that move elements."""
import torch

from common import DTYPES


def slice_(x, a):
    where = [slice(None)] * x[0].dim()
    where[a.get("axis", 0)] = slice(a.get("start", [0])[0], a.get("stop", [None])[0], a.get("step", 1))
    return [x[0][tuple(where)]]


def pad(x, a):
    axis = a.get("axis", 0) % x[0].dim()
    edges = [0, 0] * (x[0].dim() - 1 - axis) + [a["before"][0], a["after"][0]]
    return [torch.nn.functional.pad(x[0], edges, value=a.get("value", 0.0))]


def gather(x, a):
    axis, batch = a.get("axis", 0), a.get("batch", 0)
    if batch == 0:
        flat = torch.index_select(x[0], axis, x[1].reshape(-1))
        return [flat.reshape(x[0].shape[:axis] + x[1].shape + x[0].shape[axis + 1:])]
    rows = [gather([p, i], {"axis": axis - 1, "batch": batch - 1})[0] for p, i in zip(x[0], x[1])]
    return [torch.stack(rows)]


def scatter_add(x, a):
    axis, batch = a.get("axis", 0), a.get("batch", 0)
    if batch == 0:
        shape = x[0].shape[:axis] + (x[1].numel(),) + x[0].shape[axis + 1:]
        return [torch.index_add(x[0], axis, x[1].reshape(-1), x[2].reshape(shape))]
    rows = [scatter_add(list(p), {"axis": axis - 1, "batch": batch - 1})[0] for p in zip(*x)]
    return [torch.stack(rows)]


def scatter(x, a):
    """Row by row in the order of the index, so that the last of equal ones stays."""
    axis, batch = a.get("axis", 0), a.get("batch", 0)
    if batch > 0:
        rows = [scatter(list(p), {"axis": axis - 1, "batch": batch - 1})[0] for p in zip(*x)]
        return [torch.stack(rows)]
    rows, updates = list(x[0].unbind(axis)), x[2].flatten(axis, axis + x[1].dim() - 1).unbind(axis)
    for place, update in zip(x[1].reshape(-1).tolist(), updates):
        rows[place] = update
    return [torch.stack(rows, axis)]


def embedding(x, a):
    padding = a.get("padding_idx", -1)
    return [torch.nn.functional.embedding(x[1], x[0], padding_idx=None if padding < 0 else padding)]


def permute(x, a):
    return [torch.permute(x[0], a.get("axes", list(range(x[0].dim()))[::-1])).clone()]


ANSWERS = {
    "broadcast": lambda x, a: [torch.broadcast_to(x[0], a["shape"]).clone()],
    "reshape": lambda x, a: [torch.reshape(x[0], a["shape"])],
    "slice": slice_,
    "pad": pad,
    "gather": gather,
    "scatter_add": scatter_add,
    "scatter": scatter,
    "assign_rows": lambda x, a: [scatter(x, a)[0].detach()],
    "permute": permute,
    "transpose": lambda x, a: [torch.transpose(x[0], a.get("axis_a", -2), a.get("axis_b", -1)).clone()],
    "concat": lambda x, a: [torch.cat(x, a.get("axis", 0))],
    "iota": lambda x, a: [torch.arange(a["size"][0], dtype=DTYPES[a.get("dtype", "i32")])],
    "embedding": embedding,
    "assign": lambda x, a: [x[0].detach().clone().copy_(x[1].detach())],
}

I64 = "i64"
CASES = [
    ("broadcast", [(3, 1)], {"shape": [2, 3, 4]}), ("reshape", [(4, 3)], {"shape": [2, 6]}),
    ("reshape", [(4, 3)], {"shape": [3, -1, 2]}), ("reshape", [(0, 3)], {"shape": [-1, 3]}),
    ("slice", [(6, 3)], {"start": [1], "stop": [5]}),
    ("slice", [(3, 8, 2)], {"axis": 1, "start": [1], "stop": [8], "step": 3}),
    ("slice", [(3, 7)], {"axis": 1, "start": [-4], "stop": [-1], "step": 2}),
    ("slice", [(5, 2)], {"start": [-3]}), ("slice", [(5, 2)], {"start": [-9], "stop": [9], "step": 2}),
    ("slice", [(5, 2)], {"start": [4], "stop": [-3]}), ("slice", [(5, 2)], {"start": [7], "stop": [9]}),
    ("pad", [(3, 4)], {"before": [1], "after": [2], "value": 1.5}),
    ("pad", [(3, 4)], {"axis": -1, "before": [0], "after": [3]}),
    ("gather", [(5, 3), (I64, [4, 0, 2, 2])], {}),
    ("gather", [(5, 3), ("i32", [[4, 0], [1, 1]])], {}),
    ("gather", [(2, 5, 3), (I64, [3, 3])], {"axis": 1}),
    ("gather", [(4, 6), (I64, [5, 0, 3, 3])], {"axis": 1, "batch": 1}),
    ("gather", [(2, 3, 4, 2), (I64, [[3, 0], [1, 1]])], {"axis": 2, "batch": 1}),
    ("scatter_add", [(5, 3), (I64, [4, 0, 2, 2]), (4, 3)], {}),
    ("scatter_add", [(2, 5, 3), ("i32", [3, 3]), (2, 2, 3)], {"axis": 1}),
    ("scatter_add", [(4, 6), (I64, [5, 0, 3, 3]), (4,)], {"axis": 1, "batch": 1}),
    ("scatter_add", [(2, 3, 4, 2), (I64, [[3, 0], [1, 1]]), (2, 3, 2, 2)], {"axis": 2, "batch": 1}),
    ("scatter", [(5, 3), (I64, [4, 0, 2, 2]), (4, 3)], {}),
    ("scatter", [(2, 5, 3), ("i32", [3, 3]), (2, 2, 3)], {"axis": 1}),
    ("scatter", [(4, 6), (I64, [5, 0, 3, 3]), (4,)], {"axis": 1, "batch": 1}),
    ("scatter", [(2, 3, 4, 2), (I64, [[3, 0], [1, 1]]), (2, 3, 2, 2)], {"axis": 2, "batch": 1}),
    ("assign_rows", [(5, 3), (I64, [4, 0, 2, 2]), (4, 3)], {}),
    ("assign_rows", [(2, 3, 4, 2), (I64, [[3, 0], [1, 1]]), (2, 3, 2, 2)], {"axis": 2, "batch": 1}),
    ("permute", [(3, 4)], {}), ("permute", [(2, 3, 4)], {"axes": [1, 2, 0]}),
    ("transpose", [(2, 3, 4)], {}), ("transpose", [(2, 3, 4)], {"axis_a": 0}),
    ("concat", [(2, 3), (4, 3)], {}), ("concat", [(2, 3, 1), (2, 1, 1), (2, 2, 1)], {"axis": 1}),
    ("concat", [(1,)] * 8, {}),
    ("iota", [], {"size": [5]}), ("iota", [], {"size": [300], "dtype": "f16"}),
    ("embedding", [(5, 3), (I64, [4, 0, 2, 2])], {}),
    ("embedding", [(5, 3), ("i32", [[4, 2], [2, 1]])], {"padding_idx": 2}),
    ("assign", [(3, 4), (3, 4)], {}),
    ("assign", [(5,), ("bf16", [0.5, -1.25, 3.0, 100.0, -0.0])], {}),
]
