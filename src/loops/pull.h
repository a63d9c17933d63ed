#pragma once
#include <map>
#include <set>

#include "codegen/builder.h"
#include "loops/body.h"
#include "loops/stage.h"
#include "weft/status.h"

namespace weft::loops {

/// Where an element stands: an index for each axis that is longer than 1.
using Place = codegen::Ids;

/// The sizes that are not 1. The others need no index.
Sizes long_axes(std::span<const int64_t> sizes);

/// The values from `from` to `v`, each of which has the elements of the one before, maybe in another order;
/// empty where there is no such way.
std::vector<uint32_t> path_to(const Body& body, uint32_t v, uint32_t from);

/// Writes one stage, from results back to loads: to compute a value at an index, it computes the operands of
/// its step at their indices, recursively. So elementwise steps and movement use no memory. Heavy values
/// (reductions, products) must be known already, or lie in the workspace.
class Pull {
 public:
  /// `kept`: values that lie in the workspace, and where. `light_folds`: folds that are computed where they
  /// are read.
  Pull(const Body& body, const std::map<uint32_t, Bound>& kept, const std::set<uint32_t>& light_folds)
      : body_(body), kept_(kept), light_folds_(light_folds) {
    scopes_.emplace_back();
    job_.items(0);  // take() knows
  }

  codegen::LoopBuilder b;

  /// Value `v` at a place.
  codegen::Id at(uint32_t v, const Place& place);
  /// From now on, to the end of the open loop, the value is this.
  void know(uint32_t v, const Place& place, codegen::Id value);
  /// An index argument; the same `key` is the same argument.
  codegen::Id argument(const std::string& key, int64_t value);
  /// The place of element `flat` of a row-major tensor, and back.
  Place place_of(codegen::Id flat, const Sizes& axes);
  codegen::Id flat_of(const Place& place, const Sizes& axes);

  /// Where an element of the first value of a path gets to in the last one.
  Place along(std::span<const uint32_t> path, Place place);

  codegen::Id loop(codegen::Id extent);
  void end(codegen::Id loop);

  uint32_t reads(const Bound& bound);
  void store(const Bound& bound, codegen::Id at, codegen::Id value, codegen::Id guard);

  /// Why this can't be written.
  const Status& status() const { return status_; }
  Stage take(int64_t items);

  bool reads_input(uint32_t input) const;
  /// Whether every load of the input was at the very index of the store into the output.
  bool reads_only_where_written(uint32_t input, uint32_t output) const;

 private:
  using Step = Body::Step;
  struct Scope {
    std::map<std::pair<uint32_t, std::vector<codegen::Id>>, codegen::Id> values;
    std::map<uint32_t, codegen::Id> arguments;  // by slot
    std::map<std::pair<std::vector<codegen::Id>, std::vector<int64_t>>, codegen::Id> flats;
    std::map<std::pair<codegen::Id, std::vector<int64_t>>, Place> places;
  };
  template <class Map, class Key>
  auto find(Map Scope::* map, const Key& key) const -> const typename Map::mapped_type* {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = ((*scope).*map).find(key); found != ((*scope).*map).end()) return &found->second;
    return nullptr;
  }
  Scope& scope() { return scopes_.back(); }

  codegen::Id refuse(const Step& step, std::string_view why);
  codegen::Id load(uint32_t v, const Bound& bound, const Place& place);
  codegen::Id step_at(const Step& step, uint32_t v, const Place& place);
  codegen::Id elementwise(const Step& step, const std::vector<codegen::Id>& wide);
  codegen::Id full(const Step& step, uint32_t v);
  codegen::Id gather(const Step& step, const std::vector<codegen::Id>& wide);
  codegen::Id scatter_add(const Step& step, const std::vector<codegen::Id>& wide);
  codegen::Id moved(const Step& step, uint32_t v, const Place& place, const std::vector<codegen::Id>& wide);
  codegen::Id padded(const Step& step, std::vector<codegen::Id> wide);
  codegen::Id joined(const Step& step, const std::vector<codegen::Id>& wide);
  codegen::Id folded_over_ones(const Step& step, const Place& place);
  codegen::Id folded_here(const Step& step, const std::vector<codegen::Id>& wide);

  /// An index for every axis of `v`, kNone where its size is 1; and back.
  std::vector<codegen::Id> widened(uint32_t v, const Place& place) const;
  Place narrowed(uint32_t v, const std::vector<codegen::Id>& wide) const;
  codegen::Id index_or_zero(codegen::Id id) { return id == codegen::kNone ? b.index(0) : id; }
  /// `at` if it is in [0, size), and whether it is.
  std::pair<codegen::Id, codegen::Id> clamped(codegen::Id at, codegen::Id size);
  std::string key(const Step& step, const char* what) const;

  const Body& body_;
  const std::map<uint32_t, Bound>& kept_;
  const std::set<uint32_t>& light_folds_;
  std::vector<Scope> scopes_;
  std::map<std::string, uint32_t> slots_;
  std::map<std::pair<int, uint64_t>, uint32_t> buffers_;  // by kind, and index or offset
  std::vector<std::pair<uint32_t, codegen::Id>> loads_;   // input, index
  std::map<uint32_t, codegen::Id> stores_;                // output, index
  std::vector<Bound> bound_;
  Job job_;
  Status status_;
};

}  // namespace weft::loops
