"""PyTorch's answers for ops that move elements."""
import torch


def slice_(x, a):
    where = [slice(None)] * x[0].dim()
    where[a.get("axis", 0)] = slice(a.get("start", [0])[0], a["stop"][0], a.get("step", 1))
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


ANSWERS = {
    "broadcast": lambda x, a: [torch.broadcast_to(x[0], a["shape"]).clone()],
    "reshape": lambda x, a: [torch.reshape(x[0], a["shape"])],
    "slice": slice_,
    "pad": pad,
    "gather": gather,
    "scatter_add": scatter_add,
}

I64 = "i64"
CASES = [
    ("broadcast", [(3, 1)], {"shape": [2, 3, 4]}), ("reshape", [(4, 3)], {"shape": [2, 6]}),
    ("slice", [(6, 3)], {"start": [1], "stop": [5]}),
    ("slice", [(3, 8, 2)], {"axis": 1, "start": [1], "stop": [8], "step": 3}),
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
]
