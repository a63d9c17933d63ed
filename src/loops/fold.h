#pragma once
#include "loops/form.h"

namespace weft::loops {

/// What is wrong with one of the folds, and with a matmul.
Status check_fold(const weft_call& call);
Status check_matmul(const weft_call& call);
/// sum, prod, max or min.
bool is_fold(std::string_view op);
/// What a fold begins with, in the type that it is kept in; and its step.
codegen::Id fold_start(codegen::LoopBuilder& b, std::string_view op, DType t);
codegen::Id fold_step(codegen::LoopBuilder& b, std::string_view op, codegen::Id total, codegen::Id v);
/// What gather gives for an index outside.
codegen::Id outside_value(codegen::LoopBuilder& b, DType t);

}  // namespace weft::loops
