"""Compiles what texts of the dialect cuda_cpp begin with, and a kernel that uses all of it, by hipRTC for an AMD GPU.

hip_text.py ROOT ARCHITECTURE"""
import ctypes
import pathlib
import sys

KERNEL = """
extern "C" __global__ void __launch_bounds__(256) weft(const half* __restrict__ a, float* __restrict__ y, half* z,
                                                       const long first, const long second, const int n) {
  weft_begin();
  __shared__ float shared[256];
  for (uint weft_item = blockIdx.x * blockDim.x + threadIdx.x; weft_item < (uint)n;
       weft_item += gridDim.x * blockDim.x) {
    const float v = vload_half(weft_item, a);
    shared[get_local_id(0)] = exp(v) + (float)mul_hi(as_uint(v), 3u) + (float)clz((ulong)n) + convert_float_rtz(1.0 * v);
    barrier(1);
    const float all = (float)convert_schar_sat_rtz(v) + (float)convert_uchar_sat_rtz(v) + (float)convert_int_sat_rtz(v) +
                      (float)convert_uint_sat_rtz(v) + (float)convert_long_sat_rtz(v) + (float)convert_ulong_sat_rtz(v);
    y[weft_item + first] = shared[get_group_id(0)] + tanh(v) + fmax(v, all) + rint(v) + (float)as_double(second);
    vstore_half_rte(v, get_global_id(0), z);
  }
}
"""


def main(root, architecture):
    source = (pathlib.Path(root) / "src/codegen/cuda_cpp.cpp").read_text()
    begin = source.index('R"(') + 3
    text = source[begin:source.index(')";', begin)] + KERNEL
    for name in ("libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so", "libamdhip64.so.5"):
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        sys.exit("hipRTC was not found")
    program = ctypes.c_void_p()
    if library.hiprtcCreateProgram(ctypes.byref(program), text.encode(), b"weft.cu", 0, None, None):
        sys.exit("hiprtcCreateProgram failed")
    options = [f"--offload-arch={architecture}", "-std=c++17", "-ffp-contract=off", "-DWEFT_HAS_FLOAT16"]
    words = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    if library.hiprtcCompileProgram(program, len(options), words):
        size = ctypes.c_size_t()
        library.hiprtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        library.hiprtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    size = ctypes.c_size_t()
    library.hiprtcGetCodeSize(program, ctypes.byref(size))
    print(f"{architecture} cuda_cpp: a text of {len(text)} bytes, {size.value} bytes of code")


main(*sys.argv[1:])
