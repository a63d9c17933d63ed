#include "weft/function.h"

#include <algorithm>

#include "eager/apply.h"
#include "eager/tape.h"
#include "eager/trace_state.h"

namespace weft {
namespace eager {
namespace {

constexpr ir::OpDef kFunction{.name = "a function"};

/// What was saved, and where its history goes on.
struct Kept {
  Saved saved;
  Edge edge;  // of an input
  int result =
      -1;  // which one it is; its history is the node itself, so it is joined only while the rule runs
};

class Rule final : public Gradient {
 public:
  Rule(GradientRule rule, std::vector<Kept> kept) : rule_(std::move(rule)), kept_(std::move(kept)) {}

  Result<std::vector<Tensor>> run(const TapeNode& node, const std::vector<Tensor>& gradients) override {
    std::vector<Tensor> saved;
    for (size_t i = 0; i < kept_.size(); ++i) {
      const Kept& k = kept_[i];
      const Edge self{Tensor(), std::const_pointer_cast<TapeNode>(node.shared_from_this()),
                      static_cast<uint32_t>(std::max(k.result, 0))};
      WEFT_TRY(saved.emplace_back(), restored(k.saved, node, k.result < 0 ? k.edge : self, "saved tensor"));
    }
    return rule_(gradients, saved);
  }

 private:
  GradientRule rule_;
  std::vector<Kept> kept_;
};

std::vector<Kept> keep(const std::vector<Tensor>& saved, const std::vector<Tensor>& inputs,
                       const std::vector<Tensor>& results) {
  std::vector<Kept> all;
  for (const Tensor& t : saved) {
    Kept& k = all.emplace_back(Kept{value_or_raise(save(t)), {}, -1});
    const auto same = [&](const Tensor& other) { return other.impl() == t.impl(); };
    if (const auto at = std::ranges::find_if(results, same); at != results.end())
      k.result = static_cast<int>(at - results.begin());
    else if (std::ranges::any_of(inputs, same))
      k.edge = edge_to(t);
  }
  return all;
}

}  // namespace
}  // namespace eager

std::vector<Tensor> with_gradient(const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
                                  const std::vector<Tensor>& saved, GradientRule rule) {
  using namespace eager;
  const auto wants = [](const Tensor& t) { return t && t.requires_grad(); };
  if (!grad_enabled() || std::ranges::none_of(inputs, wants)) return results;
  const auto node = std::make_shared<TapeNode>();
  node->op = &kFunction, node->sequence = next_sequence();
  for (const Tensor& t : inputs) {
    node->edges.push_back(edge_to(t));
    node->in_types.push_back(t ? t.type() : TensorType{});
  }
  std::vector<Tensor> attached;
  for (size_t k = 0; k < results.size(); ++k) {
    node->out_types.push_back(results[k].type());
    attached.push_back(alias(results[k]));
    if (!is_float(results[k].dtype())) continue;
    auto& impl = *attached.back().impl();
    impl.requires_grad = true;
    impl.more().node = node, impl.more().output = static_cast<uint32_t>(k);
  }
  node->custom = std::make_unique<Rule>(std::move(rule), keep(saved, inputs, results));
  return attached;
}

}  // namespace weft
