#include "conformance/drawn/draw.h"

#include <algorithm>
#include <cstring>

#include "conformance/edges.h"
#include "conformance/prepared.h"
#include "conformance/run.h"
#include "seam/registry.h"

namespace weft::conformance {
namespace {

template <class T>
const T& any(Random& random, const std::vector<T>& list) {
  return list[random.bits() % list.size()];
}
const CaseFile* cases_of(const ir::OpDef& op) {
  for (const auto& file : case_files())
    if (std::string_view(file.op) == op.name) return &file;
  return nullptr;
}

}  // namespace

Drawing::Drawing(const std::string& backend) {
  const auto& device = *value_or_raise(seam::registry().open(backend));
  for (const auto& source : device.sources)
    for (const weft_kernel* k : source.kernels)
      // A kernel for bodies, or for every op, has no cases of its own.
      if (const auto* op = ir::find_op(k->op); op && cases_of(*op))
        kernels_.push_back({std::strchr(k->id, '.') + 1, op, op->primitive()});
  for (auto& k : kernels_) k.alone = k.alone && std::ranges::count(kernels_, k.op, &Kernel::op) == 1;
  if (kernels_.empty()) throw Error(fail(Code::unsupported, "{} has no kernel of an op with cases", backend));
}

const std::vector<Drawing::Call>& Drawing::calls_of(const ir::OpDef& op) {
  auto& calls = calls_[&op];
  if (!calls.empty()) return calls;
  for (const auto& cases : {cases_of(op)->cases(), edge_cases(op)})
    for (const Case& c : cases)
      for (int i = 0; i < kDTypeCount; ++i) {
        const auto t = static_cast<DType>(i);
        if (!holds(c.dtypes, t) || (!has_free_dtype(c) && i > 0)) continue;
        std::vector<Array> types;  // without elements: only shapes are needed
        for (const Input& input : c.inputs) types.push_back({input.dtype.value_or(t), input.shape, {}});
        const auto out = infer_op(op, value_or_raise(ir::order_attrs(op, c.attrs)), types);
        if (!out.ok()) continue;
        const TensorType& first = out.value()[0];
        calls.push_back(
            {element_count(first.shape).value(), first.rank() ? first.shape[0].value() : 0, first.dtype});
      }
  return calls;
}

When Drawing::draw_when(Random& random, const ir::OpDef& op, const Flaw& flaw) {
  std::vector<Call> fitting;
  for (const Call& c : calls_of(op))
    if (c.elements >= flaw.least) fitting.push_back(c);
  if (fitting.empty()) return {};
  const Call& like = any(random, fitting);
  const bool by_types = flaw.kind != Flaw::Kind::answer || !flaw.lie;  // others don't count launches
  const auto kind = static_cast<When::Kind>(random.bits() % (by_types ? 5 : 7));
  switch (kind) {
    case When::Kind::one_size: return {kind, like.elements};
    case When::Kind::above: return {kind, std::max<int64_t>(like.elements - 1, 0)};
    case When::Kind::batch: return {kind, std::max<int64_t>(like.rows - 1, 0)};
    case When::Kind::from_call: return {kind, static_cast<int64_t>(2 + random.bits() % 2)};
    case When::Kind::from_launch: return {kind, static_cast<int64_t>(2 + random.bits() % 20)};
    default: return {kind, 0, like.dtype};
  }
}

Lie Drawing::draw(Random& random) {
  const Kernel& kernel = any(random, kernels_);
  std::vector<const Flaw*> fitting;
  for (const Flaw& f : all_flaws())
    if ((!f.fits || f.fits(*kernel.op)) && (f.kind != Flaw::Kind::refusal || kernel.alone))
      fitting.push_back(&f);
  Lie lie{.kernel = kernel.id, .op = kernel.op->name, .flaw = any(random, fitting)};
  lie.when = draw_when(random, *kernel.op, *lie.flaw);
  lie.drawn = random.bits();
  return lie;
}

}  // namespace weft::conformance
