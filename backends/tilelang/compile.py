"""Compiles the TileLang kernels of kernels/*.py ahead of time, for GPUs that need not be here, into a table for C++ and a file of cubins beside it.

    compile.py OUT.cpp NVCC [ARCHITECTURE...]     90 by default

A variant has a name, a kernel, its tile, and whether it is for operands that begin at multiples of 16 bytes and sizes that
are multiples of 8 ("_aligned"), or for any. Kernels read and write memory by plain addresses: copies by tensor maps
would want one made for each call.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "triton"))

import tilelang
import tvm
from tvm.target import Target

import table


def text_of(variant, symbol, architecture):
    """The text of a kernel in CUDA C++ under this symbol, the names of its parameters, its threads and shared memory."""
    target = Target({"kind": "cuda", "arch": f"sm_{architecture}a" if architecture == 90 else f"sm_{architecture}"})
    options = {"tl.disable_tma_lower": True, "tl.disable_warp_specialized": True, "tl.enable_async_copy": variant["aligned"],
               "tirx.disable_vectorize": not variant["aligned"]}
    with target, tvm.transform.PassContext(opt_level=3, config=options):
        made = tilelang.lower(variant["kernel"], target=target, enable_device_compile=False)
    (function,) = made.device_mod.functions.values()
    text = made.kernel_source.replace("kernel_kernel", symbol)
    found = re.search(r"__launch_bounds__\((\d+)[^)]*\) %s\((.*?)\)" % symbol, text)
    names = [parameter.split()[-1] for parameter in found[2].split(",")]
    return text, names, int(found[1]), int(function.attrs.get("dyn_shared_memory_buf", 0))


def cubin_of(nvcc, text, architecture):
    package = pathlib.Path(tilelang.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = (os.path.join(folder, name) for name in ("kernels.cu", "kernels.cubin"))
        pathlib.Path(source).write_text(text)
        suffix = "a" if architecture == 90 else ""
        subprocess.run([nvcc, "-std=c++17", "-O3", "-w", f"-gencode=arch=compute_{architecture}{suffix},code=sm_{architecture}{suffix}",
                        "-cubin", "-I", package / "src", "-I", package / "3rdparty/cutlass/include", source, "-o", cubin], check=True)
        return pathlib.Path(cubin).read_bytes()


def main(out, nvcc, architectures):
    made, files, rows = table.Table(), [], []
    for architecture in architectures:
        for op, variants in table.kernels(pathlib.Path(__file__).parent):
            texts = []
            for variant in variants:
                name = variant["name"] + ("_aligned" if variant["aligned"] else "")
                text, names, threads, shared = text_of(variant, name, architecture)
                texts.append(text)
                rows.append((len(files), name, architecture, threads, shared, variant.get("tile", (0, 0)),
                             table.letters(op, names)))
            if texts:
                files.append(("\n".join(texts), architecture))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        places = [made.add_file(cubin) for cubin in pool.map(lambda file: cubin_of(nvcc, *file), files)]
    for file, name, architecture, threads, shared, tile, parameters in rows:
        made.add(name, name, places[file], architecture, threads, shared, tile, parameters)
    made.write(out, f"TileLang {tilelang.__version__}")


main(sys.argv[1], sys.argv[2], [int(a) for a in sys.argv[3:]] or [90])
