"""Compiles the Triton kernels of kernels/*.py ahead of time, for GPUs that need not be here, into a table for C++ and a file of cubins beside it.

    compile.py OUT.cpp [ARCHITECTURE...]     90 by default

A variant has a name, a kernel, its arguments with types, constants, warps and stages. Each is compiled twice: for
operands that begin at multiples of 16 bytes and sizes that are multiples of 16 ("_aligned"), and for any.
"""
import os
import pathlib
import sys

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # most of a cubin, otherwise

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import table


def compiled(variant, architecture, aligned):
    kernel, names = variant["kernel"], variant["kernel"].arg_names
    constants = {(names.index(name),): value for name, value in variant["constants"].items()}
    signature = {name: variant["arguments"].get(name, "constexpr") for name in names}
    hints = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names)
             if aligned and signature[name][0] in "*i" and name not in UNALIGNED}
    source = ASTSource(kernel, signature, constants, hints)
    made = triton.compile(source, target=GPUTarget("cuda", architecture, 32),
                          options={"num_warps": variant["warps"], "num_stages": variant.get("stages", 2)})
    meta = made.metadata
    if meta.global_scratch_size or meta.profile_scratch_size or meta.num_ctas != 1:
        raise SystemExit(f"{variant['name']} wants scratch memory or clusters, which the loader does not give")
    return made.asm["cubin"], meta


# What is no multiple of 16, in a call that is aligned otherwise.
UNALIGNED = {"m", "heads", "shared_by", "seq_q", "seq_k"}


def main(out, architectures):
    made = table.Table()
    for op, variants in table.kernels(pathlib.Path(__file__).parent):
        for variant in variants:
            names = [name.replace("_column", "_row") for name in variant["kernel"].arg_names if name in variant["arguments"]]
            # Kernels end in two pointers to scratch memory, of which ours want none.
            parameters = table.letters(op, names) + "--"
            tile = variant["constants"].get("ROWS", 0), variant["constants"].get("COLUMNS", 0)
            for architecture in architectures:
                for aligned in (True, False):
                    cubin, meta = compiled(variant, architecture, aligned)
                    made.add(variant["name"] + ("_aligned" if aligned else ""), meta.name, made.add_file(cubin), architecture,
                             32 * meta.num_warps, meta.shared, tile, parameters)
    made.write(out, f"Triton {triton.__version__}")


main(sys.argv[1], [int(a) for a in sys.argv[2:]] or [90])
