#include <algorithm>
#include <array>

#include "backends/native/rows.h"
#include "weft/shared/walk.hpp"

// One pass over parameter, gradient and both moments: the update is bound by memory.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = shared::arity(c, 7, 5); !s) return s;
  for (int64_t i = 0; i < 7; ++i) {
    const TypeView x = c.input(i);
    if (x.dtype() != DType::f32) return Support::no("dtype must be f32, got {}", x.dtype());
    const bool fits = i < 4 ? std::ranges::equal(x.max(), c.input(0).max()) : x.rank() == 0;
    if (!fits) return Support::no("input {} has shape {}", i, x.max());
  }
  constexpr std::array<uint32_t, 5> over = {0, 2, 3, 5, 6};
  const bool all = c.updates() == 0b11111 && std::equal(over.begin(), over.end(), c.raw()->update_inputs);
  return all ? Support::yes() : Support::no("every result must be written over its operand");
}

static Outcome launch(const Launch& l) {
  const OpCall c = l.call();
  const double beta1 = c.attr("beta1").real(0.9), beta2 = c.attr("beta2").real(0.999);
  const auto next_weight = [&](int64_t i, double beta) {
    return static_cast<float>(*l.input(i).data<float>() * beta + (1 - beta));
  };
  const float mean_weight = next_weight(5, beta1), square_weight = next_weight(6, beta2),
              rate = *l.input(4).data<float>();
  const AdamwFactors f{.beta1 = static_cast<float>(beta1),
                       .rest1 = static_cast<float>(1 - beta1),
                       .beta2 = static_cast<float>(beta2),
                       .rest2 = static_cast<float>(1 - beta2),
                       .mean_scale = 1 / mean_weight,
                       .square_scale = 1 / square_weight,
                       .decay = 1 - rate * static_cast<float>(c.attr("weight_decay").real(0.01)),
                       .rate = rate,
                       .epsilon = static_cast<float>(c.attr("epsilon").real(1e-8))};
  auto *p = l.output(0).data<float>(), *m = l.output(1).data<float>(), *v = l.output(2).data<float>();
  const auto* g = l.input(1).data<float>();
  l.host().parallel_for(l.output(0).size(), 8192, [=, &f](int64_t begin, int64_t end) {
    adamw(f, p + begin, g + begin, m + begin, v + begin, end - begin);
  });
  *l.output(3).data<float>() = mean_weight;
  *l.output(4).data<float>() = square_weight;
  return Outcome::ok();
}

extern const KernelRecord adamw_step_fused = {
    .op = "adamw_step",
    .variant = "fused",
    .reads = {"beta1", "beta2", "epsilon", "weight_decay"},
    .accepts = accepts,
    .launch = launch,
    .in_place = true,
};

}  // namespace weft::native
