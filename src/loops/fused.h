#pragma once
#include <set>

#include "loops/pull.h"

// Splits a call into a few dispatches. Heavy values need many elements of an operand: reductions and
// products. All other steps are light: each kernel recomputes the light values that it needs from heavy
// values and operands. Each kernel makes heavy values or writes results; no light value is stored.
namespace weft::loops {

/// The work of a kernel's items.
enum class Kind : uint8_t {
  flat,    ///< An item makes one element.
  row,     ///< Items of a group fold the last axes of one kept index; neighbours read neighbours.
  column,  ///< The same for the first axes: neighbours are at different kept indices.
  all,     ///< One group folds everything.
  tile,    ///< A group makes a tile of a product.
};

/// Identifies a kernel: heavy values with equal keys share one.
struct KernelKey {
  int level = 0;  ///< Kernels run in the order of their levels.
  Kind kind = Kind::flat;
  int64_t kept = 0, folded = 1;  ///< Elements made, and elements folded into each.
  uint32_t tile = 0;             ///< The product.

  bool alike(const KernelKey& o) const {
    return kind == o.kind && kept == o.kept && folded == o.folded && kind != Kind::tile && kind != Kind::flat;
  }
  auto operator<=>(const KernelKey&) const = default;
};

struct Heavy {
  uint32_t value;
  KernelKey key;
  std::set<uint32_t> needs;      ///< other heavy values
  Sizes kept_axes, folded_axes;  ///< of a fold, those that are longer than 1
  int wave = 0;                  ///< which pass of its kernel makes it
};

/// One kernel: the heavy values that it makes, and the results that it writes.
struct FusedKernel {
  KernelKey key;
  std::vector<const Heavy*> heavy;
  std::vector<uint32_t> outputs;  ///< positions
  /// For Kind::all and Kind::column with so many elements to fold that one group would take long: this many
  /// groups fold a part each into `partial`, [parts, kept], and a second kernel, `last`, folds the parts.
  int64_t parts = 0;
  bool last = false;
  std::map<uint32_t, Bound> partial;
};

/// The operands and sizes of a product.
struct Product {
  Product(const Body& body, uint32_t value);
  uint32_t a, b, y;
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  Sizes batch;  ///< axes of y before the last two
  /// The indices into the factors for element [.., i, j] of y at step k.
  Place place_a(const Body& body, const std::vector<codegen::Id>& y_at, codegen::Id k_at) const;
  Place place_b(const Body& body, const std::vector<codegen::Id>& y_at, codegen::Id k_at) const;
};

using Kept = std::map<uint32_t, Bound>;  ///< heavy values in the workspace

/// The input of the kernel writers below.
struct FusedCall {
  const Body& body;
  std::map<uint32_t, Heavy> heavy;
  Kept kept;
  std::set<uint32_t> light_folds;  ///< folds that are computed where they are read
  uint32_t subgroup;               ///< items of a group that run in step; 1: none do
};

/// Each writes the kernel of a group into `p`, whose stage has so many items or groups.
Result<int64_t> write_flat(const FusedCall& plan, const FusedKernel& group, Pull& p);
Result<int64_t> write_folds(const FusedCall& plan, const FusedKernel& group, Pull& p);
Result<int64_t> write_tile(const FusedCall& plan, const FusedKernel& group, Pull& p);

inline constexpr uint32_t kGroupItems = 256;

/// The stages of a call whose sizes are known, on a device with so many items in step; the error says why it
/// can't be fused.
Result<Stages> fused_stages(const weft_call& call, uint32_t subgroup);

}  // namespace weft::loops
