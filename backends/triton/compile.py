"""Compiles the Triton kernels of kernels/*.py ahead of time, for GPUs that need not be here, into a table for C++ and a file of cubins beside it.

    compile.py OUT.cpp [ARCHITECTURE...]     90 by default

A variant has a name, a kernel, its arguments with types, constants, warps and stages. Each is compiled twice: for
operands that begin at multiples of 16 bytes and sizes that are multiples of 16 ("_aligned"), and for any.
"""
import importlib.util
import os
import pathlib
import sys

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # most of a cubin, otherwise

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem.replace(".", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    return made.asm["cubin"], meta, len(variant["arguments"])


# What is no multiple of 16, in a call that is aligned otherwise.
UNALIGNED = {"m", "heads", "shared_by", "seq_q", "seq_k"}


def main(out, architectures):
    blob, rows = bytearray(), []
    for path in sorted(pathlib.Path(__file__).parent.glob("kernels/*.py")):
        for variant in load(path).variants():
            for architecture in architectures:
                for aligned in (True, False):
                    cubin, meta, arguments = compiled(variant, architecture, aligned)
                    name = variant["name"] + ("_aligned" if aligned else "")
                    rows.append(f'    {{"{name}", "{meta.name}", weft_triton_cubins + {len(blob)}, {architecture}, '
                                f"{meta.num_warps}, {meta.shared}, {arguments}}},\n")
                    blob += cubin + bytes(-len(cubin) % 64)
    packed = pathlib.Path(out).with_suffix(".bin").resolve()
    packed.write_bytes(blob)
    pathlib.Path(out).write_text(TEXT.format(version=triton.__version__, packed=packed, rows="".join(rows)))


TEXT = """// Made by compile.py with Triton {version}.
#include "cubin.h"

asm(".pushsection .rodata\\n.balign 64\\nweft_triton_cubins:\\n.incbin \\"{packed}\\"\\n.popsection");
extern "C" __attribute__((visibility("hidden"))) const unsigned char weft_triton_cubins[];

namespace weft::triton {{
static const Cubin kAll[] = {{
{rows}}};
std::span<const Cubin> cubins() {{ return kAll; }}
const char* made_by() {{ return "Triton {version}"; }}
}}  // namespace weft::triton
"""

main(sys.argv[1], [int(a) for a in sys.argv[2:]] or [90])
