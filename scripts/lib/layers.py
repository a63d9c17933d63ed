"""Who may include whom: the table of docs/design.md section 3, as data. scripts/check_layers compares the two."""

# Folder -> what it may include, in the words of the table. Its own headers are always allowed.
LAYERS = {
    "base": "std fmt",
    "ir": "base",
    "ops": "base ir",
    "formats": "base",
    "program": "base",
    "codegen": "base program",
    "seam": "base weft/backend.h",
    "loops": "base program codegen seam weft/backend.h",
    "dist": "base seam",
    "link": "base program seam",
    "runtime": "base formats program seam link",
    "persistent": "base program seam link",
    "import": "base ir ops formats",
    "compiler": "base ir ops formats program",
    "eager": "base ir ops seam",
    "jit": "base ir program seam eager compiler runtime",
    "nn": "public base formats",
    "io": "public base formats",
    "conformance": "all",
    "lab": "all",
    "cli": "all",
    "python": "all",
    "tests": "all",
    "fuzz": "all",
    "bench": "all",
}
# "all" is without these two, but for those who may.
JUDGES = {"conformance": {"conformance", "lab", "cli", "python", "tests"}, "lab": {"lab", "cli", "python", "tests", "bench"}}

# Public header, or folder of them, -> the folder whose .cpp files implement it. `sdk` is what a backend may see.
HEADERS = {
    "attr.h": "base", "dtype.h": "base", "shape.h": "base", "small_vector.h": "base", "status.h": "base",
    "random.h": "base", "shared/numbers.hpp": "base", "shared/contraction.hpp": "base",
    "backend.h": "sdk", "backend.hpp": "sdk", "backend/": "sdk", "shared/": "sdk",
    "backends.h": "seam", "ledger.h": "seam", "policy.h": "seam",
    "tensor.h": "eager", "trace.h": "eager", "policy_scope.h": "eager", "ops.h": "eager", "einsum.h": "eager",
    "lists.h": "eager", "pieces.h": "eager", "quantize.h": "eager", "recompute.h": "eager", "dlpack.h": "eager", "function.h": "eager",
    "jit.h": "jit", "weft.h": "runtime",
    "module.h": "nn", "nn.h": "nn", "optim.h": "nn", "sequential.h": "nn", "vision.h": "nn", "models.h": "nn",
    "checkpoint.h": "nn", "trainer.h": "nn", "pretrained.h": "nn", "generate.h": "nn", "state_dict.h": "nn",
    "text.h": "io", "data.h": "io", "sampling.h": "io", "chat.h": "io", "tokenizer.h": "io",
    "safetensors.h": "io",
}
# Public headers that are installed in the component `sdk` beside the folder `sdk` itself.
SDK_TOO = {"dtype.h", "shared/numbers.hpp", "shared/contraction.hpp"}
# Headers that the build makes, included without a folder.
GENERATED = {"plan_generated.h": "program", "graph_html.h": "cli", "report_html.h": "cli", "result_schema_json.h": "lab"}

# Headers of other projects: where they may be included. fmt is in weft/status.h, so everywhere; C, C++ and POSIX are free.
THIRD_PARTY = {
    "fmt/": set(LAYERS),
    "CLI/": {"cli", "fuzz"},
    "nlohmann/": {"bench", "cli", "formats", "fuzz", "import", "lab", "nn", "tests"},
    "flatbuffers/": {"program", "tests"},
    "xxhash.h": {"base", "fuzz", "program", "nn", "runtime", "seam", "tests"},
    "dlpack/": {"sdk", "eager", "python", "tests"},
    "nanobind/": {"python"},
    "Python.h": {"python"},
    "pcre2.h": {"io"},
    "utf8proc.h": {"io"},
    "gtest/": {"tests", "conformance"},
    "benchmark/": {"bench"},
    "cupti.h": {"bench"},
    "cublasLt.h": {"backends", "bench"},
    "cudnn_graph.h": {"backends"},
    "cuda_runtime.h": {"backends", "bench"},
    "nv/target": {"backends", "bench"},
    "CL/": {"backends"},
    "hwy/": {"backends", "lab"},
    "torch/": {"bench"},
    "ATen/": {"bench"},
    "c10/": {"bench"},
}
SYSTEM = {"cxxabi.h", "dlfcn.h", "errno.h", "fcntl.h", "linux/audit.h", "linux/capability.h", "linux/filter.h", "linux/membarrier.h", "linux/seccomp.h", "malloc.h", "poll.h", "sanitizer/allocator_interface.h", "pthread.h", "sched.h", "spawn.h", "unistd.h", "stddef.h", "stdint.h", "stdlib.h", "string.h", "stdio.h", "math.h", "pty.h", "xmmintrin.h"}

# Names that a backend has or will have and that are no words of English: they may not appear in any text of the core.
BACKEND_NAMES = {"opencl", "cuda", "hip", "vulkan", "webgpu", "onednn", "mkl", "nnpack", "xnnpack", "cublaslt", "rocblas", "cudnn",
                 "cusparselt", "tilelang", "mha", "openmp", "opt_einsum", "liar"}
# (file, name) -> why the core may spell it there.
SPELT = {
    ("src/formats/tokenizer_json.cpp", "template"): "a field of tokenizer_config.json",
    ("src/io/jinja/value.cpp", "null"): "a value of JSON",
}
# Backend -> those whose kernels it runs in another way: it may include their headers.
BUILT_ON = {"native": {"reference"}, "openmp": {"native", "reference"}, "opt_einsum": {"native", "reference"}}
# Folders of src/ that speak to people, where names may stand in help and examples.
MAY_SPELL = {"cli", "lab"}

LINE, FILE_WARNING, FILE_ERROR, FUNCTION_WARNING = 110, 400, 700, 60
