"""PyTorch's answers for einsum."""
import torch

ANSWERS = {
    "einsum": lambda x, a: [torch.einsum(a["equation"], *x)],
}

CASES = [("einsum", shapes, {"equation": equation}) for equation, shapes in [
    ("ij,jk->ik", [(3, 4), (4, 5)]), ("bij,bkj->bki", [(2, 3, 4), (2, 5, 4)]), ("ij,jk", [(3, 4), (4, 2)]),
    ("b...i,i...", [(2, 3, 4), (4, 1)]), ("...ij,...jk->...ik", [(2, 1, 2, 3), (4, 3, 2)]),
    ("ij...,jk", [(2, 3, 2), (3, 2)]), ("aB,bA", [(2, 3), (4, 2)]),
    ("ii->i", [(4, 4)]), ("ijij->", [(2, 3, 2, 3)]), ("iij,jk->ki", [(3, 3, 2), (2, 4)]),
    ("i,j->ji", [(3,), (4,)]), ("ij,k->i", [(3, 4), (2,)]), (",i->i", [(), (3,)]),
    ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 2)]), ("ijk,il,jm,kn->lmn", [(2, 3, 2), (2, 2), (3, 2), (2, 3)]),
    ("a,b,a...,b->...", [(2,), (3,), (2, 2), (3,)]),
]]
