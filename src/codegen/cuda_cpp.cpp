#include "codegen/opencl_rules.h"

// The C++ that the run-time compilers of two vendors take: CUDA's and HIP's. The prelude defines OpenCL's
// names in it, so the rules are those of C. `long` has 64 bits, as on every system but Windows.
namespace weft::codegen {
namespace {

// Items of a kernel without groups are a loop over all that one thread takes, whose loads stand beside each
// other: as many bytes are on their way as the memory wants. A result may be written over an operand of which
// only that item reads that element, so pointers are restricted all the same.
//
// Macros of the backend: WEFT_HAS_FLOAT16, where the compiler has _Float16; WEFT_STARTS_EARLY, where kernels
// are launched while the one before them drains: each touches no memory before that one has ended.
constexpr const char* kPrelude = R"(typedef signed char schar;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
struct weft_half { ushort bits; };
#define half weft_half
__device__ inline float as_float(uint x) { return __uint_as_float(x); }
__device__ inline uint as_uint(float x) { return __float_as_uint(x); }
__device__ inline double as_double(ulong x) { return __longlong_as_double((long long)x); }
__device__ inline uint mul_hi(uint a, uint b) { return __umulhi(a, b); }
__device__ inline int clz(ulong x) { return __clzll((long long)x); }
template <class T> __device__ float convert_float(T x) { return (float)x; }
template <class T> __device__ double convert_double(T x) { return (double)x; }
__device__ inline float convert_float_rtz(double x) {
  const float f = (float)x;
  return fabs((double)f) > fabs(x) ? as_float(as_uint(f) - 1u) : f;
}
#define WEFT_SATURATES(T, name, least, most, end) \
  template <class F> __device__ T convert_##name##_sat_rtz(F x) { \
    return x != x ? (T)0 : x <= (F)(least) ? (T)(least) : x >= (F)(end) ? (T)(most) : (T)x; \
  }
WEFT_SATURATES(schar, schar, -128, 127, 127)
WEFT_SATURATES(uchar, uchar, 0, 255, 255)
WEFT_SATURATES(int, int, -2147483647 - 1, 2147483647, 2147483648.0)
WEFT_SATURATES(uint, uint, 0, 4294967295u, 4294967296.0)
WEFT_SATURATES(long, long, -9223372036854775807l - 1l, 9223372036854775807l, 9223372036854775808.0)
WEFT_SATURATES(ulong, ulong, 0, 18446744073709551615ul, 18446744073709551616.0)
__device__ inline float vload_half(long i, const half* p) {
#ifdef WEFT_HAS_FLOAT16
  _Float16 h;
  __builtin_memcpy(&h, p + i, 2);
  return (float)h;
#else
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(p[i].bits));
  return f;
#endif
}
__device__ inline void vstore_half_rte(float x, long i, half* p) {
#ifdef WEFT_HAS_FLOAT16
  const _Float16 h = (_Float16)x;
  __builtin_memcpy(p + i, &h, 2);
#else
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p[i].bits) : "f"(x));
#endif
}
__device__ inline void weft_begin() {
#ifdef WEFT_STARTS_EARLY
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#define get_global_id(axis) weft_item
#define get_local_id(axis) threadIdx.x
#define get_group_id(axis) blockIdx.x
#define barrier(fence) __syncthreads()
)";

}  // namespace

extern constinit const Dialect cuda_cpp = {
    .name = "cuda_cpp",
    .registers = {"double", "float", "float", "float", "int", "long", "uint", "ulong", "bool", "float",
                  "float", "schar", "uchar", "int"},
    .storage = {"double", "float", "half", "ushort", "int", "long", "uint", "ulong", "uchar", "uchar",
                "uchar", "schar", "uchar"},
    .type_helpers = {},
    .rounding = {nullptr, nullptr, "weft_f16", "weft_bf16", nullptr, nullptr, nullptr, nullptr, nullptr,
                 "weft_e4m3", "weft_e5m2"},
    .prelude = kPrelude,
    .helper = "__device__ inline ",
    .open = "extern \"C\" __global__ void __launch_bounds__(256) $n(",
    .open_groups = "extern \"C\" __global__ void __launch_bounds__($g) $n(",
    .read_buffer = "const $t* __restrict__ $b",
    .write_buffer = "$t* __restrict__ $b",
    .offset = "const long $s",
    .scalar = "const int $s",
    .close =
        ") {\n  weft_begin();\n$a"
        "$u  for (uint weft_item = blockIdx.x * blockDim.x + threadIdx.x; weft_item < (uint)$s;\n"
        "       weft_item += gridDim.x * blockDim.x) {\n",
    .close_groups = ") {\n  weft_begin();\n$a",
    .unroll = "#pragma unroll 4\n",
    .end = "  }\n}\n",
    .advance = "$b += $o;",
    .constant_value = "const $t $v = $e;",
    .variable = "$t $v = $e;",
    .loop = "for (int $v = 0; $v < $0; ++$v) {",
    .shared = "__shared__ $t $v[$e];",
    .guarded = "if ($0) { $e }",
    .group_items = 256,
    .shared_bytes = 32768,
    .rules = opencl_rules::kRules,
    .helpers = opencl_rules::kHelpers,
};

}  // namespace weft::codegen
