#pragma once
#include <vector>

#include "weft/shared/ops/arrange.hpp"
#include "weft/shared/ops/cast.hpp"
#include "weft/shared/ops/conv.hpp"
#include "weft/shared/ops/elementwise.hpp"
#include "weft/shared/ops/gather.hpp"
#include "weft/shared/ops/matmul.hpp"
#include "weft/shared/ops/movement.hpp"
#include "weft/shared/ops/random.hpp"
#include "weft/shared/ops/reduce.hpp"
#include "weft/shared/ops/scan.hpp"
#include "weft/shared/ops/sort.hpp"

// Every primitive op in simple, slow and right form: what a new backend starts with, and what `reference` is.
namespace weft::shared {

/// All of docs/primitives.md. Their launches want host addresses; a queue that runs later gives them a
/// LaunchCopy.
///
///     static backend::KernelTable table("mine", {my_records, shared::primitives()});
inline std::vector<backend::KernelRecord> primitives() {
  std::vector<backend::KernelRecord> all;
  auto add = [&](const auto& records) { all.insert(all.end(), records.begin(), records.end()); };
  add(binary_records());
  add(function_records());
  add(choice_records());
  add(reduce_records());
  add(matmul_records());
  add(conv_records());
  add(movement_records());
  add(arrange_records());
  add(gather_records());
  add(scan_records());
  add(sort_records());
  add(random_records());
  add(cast_records());
  return all;
}

}  // namespace weft::shared
