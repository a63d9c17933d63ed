#include <algorithm>

#include "compiler/recompose.h"

namespace weft::compiler {

// Averages over whole images are a mean, for which there are kernels, and which layouts follow.
static std::vector<Term> terms_of_global_pool() {
  return {terms::op("adaptive_avg_pool", {terms::any("x")}).as("pool")};
}

static ir::Value make_global_pool(const Place& p) {
  const auto& size = std::get<Shape>(attr(*p.matcher.maker(p.root), "size"));
  if (!std::ranges::all_of(size, [](Dim d) { return d == Dim(1); })) return {};
  const int64_t rank = p.value("x").type().rank();
  Shape axes;
  for (int64_t d = rank - static_cast<int64_t>(size.size()); d < rank; ++d) axes.push_back(d);
  return p.graph.one("mean", {p.value("x")}, {{"axes", axes}, {"keep", int64_t{1}}});
}

extern const Recomposition global_pool_recomposition = {"global_pool", terms_of_global_pool,
                                                        make_global_pool};

}  // namespace weft::compiler
