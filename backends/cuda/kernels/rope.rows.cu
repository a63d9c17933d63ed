#include "../rotation.hpp"
#include "../rows.hpp"

// Rotary embedding. Rows whose norm still waits in the queue are turned by it.
namespace weft::cuda {

using namespace backend;

namespace {

TableRows table_rows(std::span<const int64_t> x, std::span<const int64_t> table) {
  TableRows r{};
  r.axes = static_cast<int>(x.size()) - 1;
  const size_t missing = x.size() - table.size();
  int stride = 1;
  for (size_t d = x.size() - 1; d-- > 0;) {
    const int64_t size = d < missing ? 1 : table[d - missing];
    r.sizes[d] = static_cast<int>(x[d]);
    r.strides[d] = size == 1 ? 0 : stride;
    stride *= static_cast<int>(size);
  }
  return r;
}

Support accepts(const OpCall& c) {
  const TypeView x = c.input(0);
  if (x.rank() > TableRows::kMostAxes + 1)
    return Support::no("at most {} axes, got {}", TableRows::kMostAxes + 1, x.rank());
  return takes_rows(x);
}

template <class T>
Outcome rotate(const Launch& l) {
  using Work = Rotation<T>;
  const TensorView x = l.input(0), cosine = l.input(1), sine = l.input(2), y = l.output(0);
  const std::array reads = {range_of(cosine), range_of(sine), range_of(x)};
  const std::array writes = {range_of(y)};
  const auto turns = [&](typename Work::Piece& piece) {
    piece.cosine = cosine.data<const T>(), piece.sine = sine.data<const T>(), piece.y = y.data<T>();
    piece.interleaved = l.call().attr("interleaved").integer();
    piece.tables = table_rows(x.dims(), cosine.dims());
  };
  typename Work::Piece piece{};
  piece.x = x.data<const T>(), piece.n = x.size() / 2;
  piece.half = static_cast<int>(x.dim(x.rank() - 1) / 2);
  {
    Queue& queue = queue_of(l);
    const std::lock_guard lock(queue.collecting);
    const auto tables = std::span(reads).first(2);
    typename Work::Piece* norm = nullptr;
    auto* const open = queue.collected.find<CollectedOf<Work>>(reads, writes, [&](auto& all) {
      norm = all.find([&](const auto& p) {
        return p.normed == piece.x && p.n == piece.n && p.half == piece.half && !p.y;
      });
      return norm && !all.depends(tables, writes);
    });
    if (open) {
      turns(*norm);
      open->uses(tables, writes);
      return Outcome::ok();
    }
  }
  turns(piece);
  return collect<Work>(l, {}, piece, reads, writes);
}

Outcome launch(const Launch& l) {
  if (l.input(0).size() == 0) return Outcome::ok();
  return with_type(l.input(0).dtype(), [&]<class T>(T*) { return rotate<T>(l); });
}

}  // namespace

std::span<const KernelRecord> rope_rows() {
  static const KernelRecord all[] = {{.op = "rope",
                                      .variant = "rows",
                                      .reads = {"interleaved"},
                                      .accepts = accepts,
                                      .launch = launch,
                                      .joins = true}};
  return all;
}

}  // namespace weft::cuda
