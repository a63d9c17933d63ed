#include "codegen/opencl_rules.h"

// OpenCL C 1.2.
namespace weft::codegen {

extern constinit const Dialect opencl_c = {
    .name = "opencl_c",
    .registers = {"double", "float", "float", "float", "int", "long", "uint", "ulong", "bool", "float",
                  "float", "char", "uchar", "int"},
    .storage = {"double", "float", "half", "ushort", "int", "long", "uint", "ulong", "uchar", "uchar",
                "uchar", "char", "uchar"},
    .type_helpers = {"fp64"},
    .rounding = {nullptr, nullptr, "weft_f16", "weft_bf16", nullptr, nullptr, nullptr, nullptr, nullptr,
                 "weft_e4m3", "weft_e5m2"},
    .prelude = "#pragma OPENCL FP_CONTRACT OFF\n",
    .helper = "",
    .open = "__kernel void $n(",
    .open_groups = "__kernel __attribute__((reqd_work_group_size($g, 1, 1))) void $n(",
    .read_buffer = "__global const $t* $b",
    .write_buffer = "__global $t* $b",
    .offset = "const long $s",
    .scalar = "const int $s",
    .close = ") {\n  if (get_global_id(0) >= (size_t)$s) return;\n$a",
    .close_groups = ") {\n$a",
    .unroll = "",
    .end = "}\n",
    .advance = "$b += $o;",
    .constant_value = "const $t $v = $e;",
    .variable = "$t $v = $e;",
    .loop = "for (int $v = 0; $v < $0; ++$v) {",
    .shared = "__local $t $v[$e];",
    .guarded = "if ($0) { $e }",
    .group_items = 256,
    .shared_bytes = 32768,
    .rules = opencl_rules::kRules,
    .helpers = opencl_rules::kHelpers,
};

}  // namespace weft::codegen
