"""check_layers must bite: each violation below is planted alone in a copy of the tree, and its finding must appear."""
import os
import shutil
import tempfile

# (what, file to write or add to, text, what the finding must say). A text that begins with + is added to the file.
PLANTS = [
    ("a layer above", "src/base/planted.cpp", '#include "ir/graph.h"\n', 'planted.cpp:1: include: base includes "ir/graph.h"'),
    ("a sibling layer", "src/compiler/planted.cpp", '#include "seam/prepared_kernel.h"\n', "include: compiler includes"),
    ("a public header above", "src/ir/planted.cpp", '#include "weft/tensor.h"\n', '(eager); allowed: base'),
    ("angle brackets", "src/ir/planted.cpp", "#include <weft/tensor.h>\n", '(eager); allowed: base'),
    ("the generated header", "src/link/planted.cpp", '#include "weft/ops.h"\n', "include: link includes"),
    ("a public header with a layer above", "include/weft/shape.h", '+#include "weft/jit.h"\n', "include: base includes"),
    ("nn below the public headers", "src/nn/planted.cpp", '#include "eager/tape.h"\n', "include: nn includes"),
    ("the core includes a judge", "src/jit/planted.cpp", '#include "conformance/run.h"\n', "include: jit includes"),
    ("bench includes a judge", "bench/planted.cpp", '#include "conformance/run.h"\n', "include: bench includes"),
    ("a backend beyond the sdk", "backends/far/planted.cpp", '#include "weft/shape.h"\n', "include: backends includes"),
    ("a backend into the core", "backends/null/planted.cpp", '#include "seam/device.h"\n', "include: backends includes"),
    ("the sdk beyond itself", "include/weft/backend.hpp", '+#include "weft/status.h"\n', "include: sdk includes"),
    ("the core includes a backend", "src/seam/planted.cpp", '#include "backends/far/queue.hpp"\n', "nobody includes a backend"),
    ("a backend includes another", "backends/null/planted.cpp", '#include "backends/native/rows.h"\n', "nobody includes a backend"),
    ("no such folder", "src/seam/planted.cpp", '#include "elsewhere/x.h"\n', "belongs to no folder"),
    ("a folder outside the table", "src/planted/planted.cpp", "int x;\n", "is not in the table"),
    ("a public header of nobody", "include/weft/planted.h", "#pragma once\n", "a new public header"),
    ("a vendor's header in the core", "src/loops/planted.cpp", "#include <CL/cl.h>\n", "library: <CL/cl.h>"),
    ("a library for others", "src/ir/planted.cpp", "#include <nlohmann/json.hpp>\n", "library: <nlohmann/json.hpp>"),
    ("an unknown library", "src/ir/planted.cpp", "#include <boost/any.hpp>\n", "library: <boost/any.hpp>"),
    ("#ifdef of a backend", "src/seam/planted.cpp", "#ifdef WEFT_CUDA\n#endif\n", "a condition on cuda"),
    ("#if defined of a backend", "tests/planted.cpp", "#if defined(USE_OPENCL)\n#endif\n", "a condition on opencl"),
    ("a backend's name in a text", "src/seam/planted.cpp", 'auto x = "needs OpenCL 2.0";\n', "spells the name"),
    ("a name that is a word", "src/link/planted.cpp", 'bool y = x == "far";\n', "spells the name"),
    ("a name with an ordinal", "src/link/planted.cpp", 'bool y = x == "cuda:0";\n', "spells the name"),
    ("the build names a backend", "CMakeLists.txt", "+option(USE_CUDA off)\n", "the build spells cuda"),
    ("the build links whole", "cmake/options.cmake", "+add_link_options(-Wl,--whole-archive)\n", "no --whole-archive"),
    ("a registration macro", "src/ops/planted.cpp", "REGISTER_OP(planted);\n", "nothing registers itself"),
    ("a static registrar", "src/ops/planted.cpp", "static bool registered = add(op);\n", "nothing registers itself"),
    ("a constructor function", "src/ops/planted.cpp", "__attribute__((constructor)) void f();\n", "nothing registers itself"),
    ("a long line", "src/ir/planted.cpp", "//" + "x" * 109 + "\n", "line: 111 characters"),
    ("a long file", "src/ir/planted.cpp", "//\n" * 701, "file: 701 lines, at most 700"),
    ("a file that grows long", "src/ir/planted.cpp", "//\n" * 501, "file: 501 lines, better"),
    ("a long function", "src/ir/planted.cpp", "void planted(int) {\n" + "  f();\n" * 60 + "}\n", "planted has 62 lines"),
    ("a test in the namespace of all", "tests/planted_test.cpp", "namespace weft {\n}\n", "namespace: wants one of its own"),
    ("a check in the namespace of all", "conformance/checks/ops/planted.cpp", "namespace weft::conformance {\n}\n",
     "weft::...::checks::planted"),
    ("the page says otherwise", "docs/design.md", ("| ops | base ir |", "| ops | base ir seam |"), "table: ops"),
]
# These look like violations and are none.
INNOCENT = [
    ("a name in a comment", "src/seam/planted.cpp", "// as opencl and cuda do\n"),
    ("a word of English", "src/seam/planted.cpp", 'auto x = "so far no template";\n'),
    ("an include in a comment", "src/base/planted.cpp", '// #include "ir/graph.h"\n'),
    ("an include across lines of comment", "src/base/planted.cpp", '/*\n#include "ir/graph.h"\n*/\n'),
    ("110 characters", "src/ir/planted.cpp", "//" + "é" * 108 + "\n"),
    ("60 lines", "src/ir/planted.cpp", "void planted(int) {\n" + "  f();\n" * 58 + "}\n"),
    ("a backend built on another", "backends/openmp/planted.cpp", '#include "backends/native/native.h"\n'),
    ("a backend's own folder", "backends/native/kernels/planted.cpp", '#include "backends/native/rows.h"\n'),
    ("a test in its own namespace", "tests/planted_test.cpp", "namespace weft::testing::planted_test {\n}\n"),
    ("a test includes a judge", "tests/planted.cpp", '#include "conformance/run.h"\n'),
]


def planted(checker, root, where, text):
    path = os.path.join(root, where)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    old = open(path, encoding="utf-8").read() if os.path.exists(path) else None
    if isinstance(text, tuple):
        if text[0] not in old:
            return None
        new = old.replace(*text)
    else:
        new = old + text[1:] if text.startswith("+") else text
    try:
        with open(path, "w", encoding="utf-8") as f:
            f.write(new)
        c = checker(root).run()
        return c.errors + c.warnings
    finally:
        if old is None:
            os.remove(path)
        else:
            with open(path, "w", encoding="utf-8") as f:
                f.write(old)
        if where == "src/planted/planted.cpp":
            os.rmdir(os.path.dirname(path))


def run(checker, source):
    failed = 0
    with tempfile.TemporaryDirectory() as root:
        for folder in ("include", "src", "backends", "cmake", "docs"):
            shutil.copytree(os.path.join(source, folder), os.path.join(root, folder),
                            ignore=shutil.ignore_patterns("build", "__pycache__"))
        shutil.copy(os.path.join(source, "CMakeLists.txt"), root)
        first = checker(root).run()
        before = set(first.errors + first.warnings)
        for what, where, text, finding in PLANTS:
            new = [e for e in planted(checker, root, where, text) or [] if e not in before]
            if not any(finding in e for e in new):
                failed += 1
                print(f"not caught: {what} ({where}); new findings: {new}")
        for what, where, text in INNOCENT:
            new = [e for e in planted(checker, root, where, text) if e not in before]
            if new:
                failed += 1
                print(f"wrongly caught: {what}: {new}")
    n = len(PLANTS) + len(INNOCENT)
    print(f"check_layers --self-test: {n - failed} of {n} as they should be")
    return 1 if failed else 0
