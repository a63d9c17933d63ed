#pragma once
#include "../kernel.hpp"
#include "barrier.hpp"

// Products of a warpgroup (wgmma): 4 neighbouring warps multiply a tile of 64 rows. They run beside the
// threads; their results may be read, and their operands written again, after wait_for_products.
namespace weft::cuda::hopper {

/// How an operand lies in shared memory, as tiles swizzled by 128 bytes, 64 elements wide. m is its row of a,
/// its column of b:
///   along_k  rows of 64 elements k, one for each m. 8 rows follow 8 rows.
///   along_m  rows of 64 elements m, one for each k. More than 64 m are further tiles.
enum class Lies { along_k, along_m };

/// The descriptor of an operand that begins at this address, for the first 16 k. `tile_bytes`: from one tile
/// of 64 m to the next, for along_m.
template <Lies lies>
__device__ uint64_t operand_at(uint32_t address, uint32_t tile_bytes = 0) {
  constexpr uint64_t kSwizzled128 = uint64_t{1} << 62;
  constexpr uint64_t kNextEight = uint64_t{1024 >> 4} << 32;  // 8 rows of 128 bytes
  const uint64_t next_tile = lies == Lies::along_m ? uint64_t{tile_bytes >> 4} << 16 : uint64_t{1} << 16;
  return kSwizzled128 | kNextEight | next_tile | ((address & 0x3ffff) >> 4);
}
template <Lies lies>
__device__ uint64_t operand_at(const void* tile, uint32_t tile_bytes = 0) {
  return operand_at<lies>(shared_address(tile), tile_bytes);
}
/// What is added to the descriptor for the next 16 k: 32 bytes of each row, or 16 rows.
template <Lies lies>
inline constexpr uint64_t kNextSixteen = (lies == Lies::along_k ? 32 : 16 * 128) >> 4;

/// Orders what the threads did to registers before the products that follow. Comes before the first one.
__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// Ends a group of products.
__device__ inline void end_of_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most n groups are pending.
template <int n>
__device__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory");
}
/// Keeps the compiler from moving uses of results before this. Comes after the wait.
template <int n>
__device__ void hold(float (&results)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(results[i])::"memory");
}
template <int n>
__device__ void hold(int (&results)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+r"(results[i])::"memory");
}

/// The product of 64 x 16 by 16 x n elements, asynchronously: c = a b, or c += a b if `add`. a lies in shared
/// memory or in registers, b in shared memory. Of warp w of the four, lane: g = lane / 4, t = lane % 4:
///   c[4 j ..]  row 16 w + g, columns 8 j + 2 t and the next; row g + 8, the same
///   a[0..3]    rows g, g + 8, g, g + 8; elements 2 t and the next of the first, first, last, last 8
/// So c of one product, narrowed and packed in pairs, is a of the next: c[8 i ..] are its k from 16 i on.
template <class T, int n, Lies of_a = Lies::along_k, Lies of_b = Lies::along_k>
struct Product;

// Texts of operands, %<first> and so on, by tens; and the registers themselves, by eights.
#define WEFT_TEN(t) \
  "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9, "
#define WEFT_THIRTY WEFT_TEN() WEFT_TEN(1) WEFT_TEN(2)
#define WEFT_SIXTY WEFT_THIRTY WEFT_TEN(3) WEFT_TEN(4) WEFT_TEN(5)
#define WEFT_NINETY WEFT_SIXTY WEFT_TEN(6) WEFT_TEN(7) WEFT_TEN(8)
#define WEFT_NAMES_32 WEFT_THIRTY "%30, %31"
#define WEFT_NAMES_48 WEFT_THIRTY WEFT_TEN(3) "%40, %41, %42, %43, %44, %45, %46, %47"
#define WEFT_NAMES_64 WEFT_SIXTY "%60, %61, %62, %63"
#define WEFT_NAMES_96 WEFT_NINETY "%90, %91, %92, %93, %94, %95"
#define WEFT_NAMES_120 WEFT_NINETY WEFT_TEN(9) WEFT_TEN(10) WEFT_TEN(11)
#define WEFT_NAMES_128 WEFT_NAMES_120 "%120, %121, %122, %123, %124, %125, %126, %127"
#define WEFT_8(i)                                                                             \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), \
      "+f"(c[i + 6]), "+f"(c[i + 7])
#define WEFT_32(i) WEFT_8(i), WEFT_8(i + 8), WEFT_8(i + 16), WEFT_8(i + 24)
#define WEFT_REGISTERS_32 WEFT_32(0)
#define WEFT_REGISTERS_48 WEFT_32(0), WEFT_8(32), WEFT_8(40)
#define WEFT_REGISTERS_64 WEFT_32(0), WEFT_32(32)
#define WEFT_REGISTERS_96 WEFT_32(0), WEFT_32(32), WEFT_32(64)
#define WEFT_REGISTERS_128 WEFT_32(0), WEFT_32(32), WEFT_32(64), WEFT_32(96)

// n columns are `count` registers; p0 .. p6 are the texts of the operands after them.
// clang-format off
#define WEFT_PRODUCT(T, type, n, count, p0, p1, p2, p3, p4, p5, p6)                                 \
  template <Lies of_a, Lies of_b>                                                                   \
  struct Product<T, n, of_a, of_b> {                                                                \
    static __device__ void run(float (&c)[count], uint64_t a, uint64_t b, bool add) {               \
      asm volatile(                                                                                 \
          "{\n"                                                                                     \
          ".reg .pred add;\n"                                                                       \
          "setp.ne.b32 add, " p2 ", 0;\n"                                                           \
          "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type                           \
          " {" WEFT_NAMES_##count "}, " p0 ", " p1 ", add, 1, 1, " p3 ", " p4 ";\n"                 \
          "}"                                                                                       \
          : WEFT_REGISTERS_##count                                                                  \
          : "l"(a), "l"(b), "r"(int{add}), "n"(of_a == Lies::along_m), "n"(of_b == Lies::along_m)); \
    }                                                                                               \
    static __device__ void run(float (&c)[count], const uint32_t (&a)[4], uint64_t b, bool add) {   \
      asm volatile(                                                                                 \
          "{\n"                                                                                     \
          ".reg .pred add;\n"                                                                       \
          "setp.ne.b32 add, " p5 ", 0;\n"                                                           \
          "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type                           \
          " {" WEFT_NAMES_##count "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1, " p6     \
          ";\n"                                                                                     \
          "}"                                                                                       \
          : WEFT_REGISTERS_##count                                                                  \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int{add}),                      \
            "n"(of_b == Lies::along_m));                                                            \
    }                                                                                               \
  };
// clang-format on
#define WEFT_PRODUCTS(n, count, ...)              \
  WEFT_PRODUCT(f16, "f16", n, count, __VA_ARGS__) \
  WEFT_PRODUCT(bf16, "bf16", n, count, __VA_ARGS__)

WEFT_PRODUCTS(64, 32, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
WEFT_PRODUCTS(96, 48, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
WEFT_PRODUCTS(128, 64, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
WEFT_PRODUCTS(192, 96, "%96", "%97", "%98", "%99", "%100", "%101", "%102")
WEFT_PRODUCTS(256, 128, "%128", "%129", "%130", "%131", "%132", "%133", "%134")

/// Floats of 8 bits as they lie in memory.
struct e4m3 {
  uint8_t bits;
};
struct e5m2 {
  uint8_t bits;
};

/// The product of 64 x 32 by 32 x 64 floats of 8 bits, both of which lie along k in shared memory: c = a b,
/// or c += a b if `add`, with c as Product has it. The next 32 k are as far as 16 of 16-bit floats.
///
/// A sum keeps 13 bits behind its largest term's first one (what is cut off: see scaled_kernel.hpp).
template <class A, class B>
struct Product8;

// clang-format off
#define WEFT_PRODUCT8(A, B)                                                                          \
  template <>                                                                                        \
  struct Product8<A, B> {                                                                            \
    static __device__ void run(float (&c)[32], uint64_t a, uint64_t b, bool add) {                   \
      asm volatile(                                                                                  \
          "{\n"                                                                                      \
          ".reg .pred add;\n"                                                                        \
          "setp.ne.b32 add, %34, 0;\n"                                                               \
          "wgmma.mma_async.sync.aligned.m64n64k32.f32." #A "." #B                                    \
          " {" WEFT_NAMES_32 "}, %32, %33, add, 1, 1;\n"                                             \
          "}"                                                                                        \
          : WEFT_REGISTERS_32                                                                        \
          : "l"(a), "l"(b), "r"(int{add}));                                                          \
    }                                                                                                \
  };
// clang-format on
WEFT_PRODUCT8(e4m3, e4m3)
WEFT_PRODUCT8(e4m3, e5m2)
WEFT_PRODUCT8(e5m2, e4m3)
WEFT_PRODUCT8(e5m2, e5m2)

#define WEFT_8_INTEGERS(i)                                                                    \
  "+r"(c[i]), "+r"(c[i + 1]), "+r"(c[i + 2]), "+r"(c[i + 3]), "+r"(c[i + 4]), "+r"(c[i + 5]), \
      "+r"(c[i + 6]), "+r"(c[i + 7])
#define WEFT_32_INTEGERS(i) \
  WEFT_8_INTEGERS(i), WEFT_8_INTEGERS(i + 8), WEFT_8_INTEGERS(i + 16), WEFT_8_INTEGERS(i + 24)

/// The product of 64 x 32 by 32 x 128 integers of 8 bits, both along k in shared memory, with steps as
/// Product8 has them. Sums are integers: exact, modulo 2^32.
template <>
struct Product<int8_t, 128, Lies::along_k, Lies::along_k> {
  static __device__ void run(int (&c)[64], uint64_t a, uint64_t b, bool add) {
    asm volatile(
        "{\n"
        ".reg .pred add;\n"
        "setp.ne.b32 add, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {" WEFT_NAMES_64
        "}, %64, %65, add;\n"
        "}"
        : WEFT_32_INTEGERS(0), WEFT_32_INTEGERS(32)
        : "l"(a), "l"(b), "r"(int{add}));
  }
};

#undef WEFT_32_INTEGERS
#undef WEFT_8_INTEGERS
#undef WEFT_PRODUCT8
#undef WEFT_PRODUCTS
#undef WEFT_PRODUCT
#undef WEFT_REGISTERS_128
#undef WEFT_REGISTERS_96
#undef WEFT_REGISTERS_64
#undef WEFT_REGISTERS_48
#undef WEFT_REGISTERS_32
#undef WEFT_32
#undef WEFT_8
#undef WEFT_NAMES_128
#undef WEFT_NAMES_120
#undef WEFT_NAMES_96
#undef WEFT_NAMES_64
#undef WEFT_NAMES_48
#undef WEFT_NAMES_32
#undef WEFT_NINETY
#undef WEFT_SIXTY
#undef WEFT_THIRTY
#undef WEFT_TEN

}  // namespace weft::cuda::hopper
