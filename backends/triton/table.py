"""The table of cubins that cubin.h declares: what compile.py of backends/triton and of backends/tilelang write."""
import importlib.util
import pathlib

# What the records (kernels/*.cpp) give to kernels, in their order. A kernel takes those that it has parameters for.
ARGUMENTS = {
    "softmax": "x y columns rows",
    "rms_norm": "x weight y columns epsilon rows",
    # Of each factor one stride is 1; a_row and b_row are the other one. a_of: how many matrices
    # there are, batch or 1.
    "matmul": "a b c m n k a_row b_row a_batch b_batch c_batch batch a_of b_of",
    "attention": "q k v y lse heads shared_by seq_q seq_k q_row q_head k_row k_head scale batch",
}


def kernels(folder):
    """Of each file of a folder of kernels: the op that it is for, and its variants."""
    for path in sorted(pathlib.Path(folder).glob("kernels/*.py")):
        spec = importlib.util.spec_from_file_location(path.stem.replace(".", "_"), path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield path.name.split(".")[0], list(module.variants())


def letters(op, names):
    """The parameters of a kernel for op, as Cubin::parameters says. An eighth of `n` is named `n8`."""
    given = ARGUMENTS[op].split()
    return "".join(chr(65 + given.index(name[:-1])) if name not in given and name.endswith("8") else
                   chr(97 + given.index(name)) for name in names)


class Table:
    """Collects kernels; write() makes OUT.cpp and a file of all cubins beside it."""

    def __init__(self):
        self.blob, self.rows = bytearray(), []

    def add_file(self, cubin):
        """Adds a cubin; returns its place."""
        place = len(self.blob)
        self.blob += cubin + bytes(-len(cubin) % 64)
        return place

    def add(self, name, symbol, place, architecture, threads, shared, tile, parameters):
        rows, columns = tile
        self.rows.append(f'    {{"{name}", "{symbol}", weft_cubins + {place}, {architecture}, {threads}, {shared}, {rows}, '
                         f'{columns}, "{parameters}"}},\n')

    def write(self, out, made_by):
        packed = pathlib.Path(out).with_suffix(".bin").resolve()
        packed.write_bytes(self.blob)
        pathlib.Path(out).write_text(TEXT.format(made_by=made_by, packed=packed, rows="".join(self.rows)))


TEXT = """// Made by compile.py with {made_by}.
#include "cubin.h"

asm(".pushsection .rodata\\n.balign 64\\nweft_cubins:\\n.incbin \\"{packed}\\"\\n.popsection");
extern "C" __attribute__((visibility("hidden"))) const unsigned char weft_cubins[];

namespace weft::cubins {{
static const Cubin kAll[] = {{
{rows}}};
std::span<const Cubin> cubins() {{ return kAll; }}
const char* made_by() {{ return "{made_by}"; }}
}}  // namespace weft::cubins
"""
