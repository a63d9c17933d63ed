#include "cases.h"

#include <fmt/format.h>

#include <array>
#include <thread>

#include "compiler/compile.h"
#include "lab/results/limits.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "weft/jit.h"
#include "weft/ops.h"
#include "weft/tensor.h"

namespace weft::speed {
namespace {

Tensor tensor_of(const Operand& o) {
  if (o.values.empty() && !o.indices.empty())
    return Tensor::of(std::span<const int64_t>(o.indices), o.shape, DType::i64);
  return Tensor::from_bytes(std::as_bytes(std::span(o.values)), o.shape, DType::f32);
}

Task task_of(const Operands& operands, const Op& op) {
  std::vector<Tensor> x;
  for (const auto& o : operands) x.push_back(tensor_of(o));
  const auto y = std::make_shared<Tensor>();
  return {[x, y, op] { *y = op(x); }, [y] { return y->to_vector<float>(); }};
}

}  // namespace

Case compared(std::string name, const std::string& peer_op, std::function<Operands()> make, Op op,
              double flops, std::vector<double> numbers) {
  const auto operands = std::make_shared<Operands>();
  const auto fill = [operands, make] {
    if (operands->empty()) *operands = make();
  };
  return {"", std::move(name),
          [=] {
            fill();
            return task_of(*operands, op);
          },
          [=] {
            fill();
            return peer_tasks(peer_op, *operands, numbers);
          },
          flops};
}

Case product(int64_t m, int64_t n, int64_t k) {
  return compared(
      fmt::format("matmul {} x {} x {}", m, n, k), "matmul",
      [=] { return Operands{random_operand({m, k}, 1), random_operand({k, n}, 2)}; },
      [](const std::vector<Tensor>& x) { return matmul(x[0], x[1]); }, 2.0 * static_cast<double>(m * n * k));
}

namespace {

Group products(int threads) {
  Group g{"f32 matmul", threads, 0.75, 0.5, {}};
  for (const int64_t n : {64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048})
    g.cases.push_back(product(n, n, n));
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{65, 65, 65},
                                {100, 100, 100},
                                {127, 255, 511},
                                {333, 777, 555},
                                {1000, 1000, 1000},
                                {64, 4096, 1024},
                                {2048, 64, 512},
                                {4, 1024, 1024},
                                {1, 4096, 1024}})
    g.cases.push_back(product(m, n, k));
  return g;
}

// 1 k to 16 M elements, in rows of 64 to 4096.
std::vector<std::pair<int64_t, int64_t>> row_shapes() {
  return {{16, 64}, {4, 1024}, {128, 128}, {64, 1024}, {512, 1024}, {1024, 1024}, {4096, 1024}, {4096, 4096}};
}

void more_rows(Group& g, int64_t r, int64_t n);

Group rows(int threads) {
  Group g{"rows and elements", threads, 1.0, 0, {}};
  for (const auto& [r, n] : row_shapes()) {
    const auto shape = std::vector<int64_t>{r, n};
    const std::string size = fmt::format("{} x {}", r, n);
    g.cases.push_back(compared(
        "softmax " + size, "softmax", [=] { return Operands{random_operand(shape, 3, 2)}; },
        [](const std::vector<Tensor>& x) { return softmax(x[0]); }));
    g.cases.push_back(compared(
        "rms_norm " + size, "rms_norm",
        [=, n = n] { return Operands{random_operand(shape, 4), random_operand({n}, 5)}; },
        [](const std::vector<Tensor>& x) { return rms_norm(x[0], x[1]); }));
    g.cases.push_back(compared(
        "cross_entropy " + size, "cross_entropy",
        [=, r = r, n = n] {
          Operand target{{r}, {}, {}};
          for (int64_t i = 0; i < r; ++i) target.indices.push_back(i * 7919 % n);
          return Operands{random_operand(shape, 6, 2), target};
        },
        [](const std::vector<Tensor>& x) { return cross_entropy(x[0], x[1]); }));
    more_rows(g, r, n);
  }
  return g;
}

// The same shapes again for ops of one operand or with weights, and the optimiser's step on as many elements.
void more_rows(Group& g, int64_t r, int64_t n) {
  const auto shape = std::vector<int64_t>{r, n};
  const std::string size = fmt::format("{} x {}", r, n);
  g.cases.push_back(compared(
      "gelu " + size, "gelu", [=] { return Operands{random_operand(shape, 9, 2)}; },
      [](const std::vector<Tensor>& x) { return gelu(x[0]); }));
  g.cases.push_back(compared(
      "layer_norm " + size, "layer_norm",
      [=] { return Operands{random_operand(shape, 10), random_operand({n}, 11), random_operand({n}, 12)}; },
      [](const std::vector<Tensor>& x) { return layer_norm(x[0], x[1], x[2]); }));
  Case step = compared(
      "AdamW " + size, "adamw_fused",
      [=] { return Operands{random_operand(shape, 13), random_operand(shape, 14)}; },
      [state = std::make_shared<std::vector<Tensor>>()](const std::vector<Tensor>& x) {
        if (state->empty()) {
          const auto zeros = [&](const Shape& s) { return full(0, s); };
          *state = {mul(x[0], Tensor::scalar(1)), zeros(x[0].shape()), zeros(x[0].shape()),
                    Tensor::scalar(1e-3),         zeros({}),           zeros({})};
        }
        auto& t = *state;
        adamw_step(t[0], x[1], t[1], t[2], t[3], t[4], t[5]);
        return t[0];
      });
  // Both go on from where they are, so their results after different numbers of steps differ.
  const auto ours = step.ours;
  step.ours = [ours] { return Task{ours().run, {}}; };
  g.cases.push_back(step);
}

Group attentions(int threads) {
  Group g{"attention", threads, 0.7, 0, {}};
  for (const int64_t n : {128, 256, 512, 1024, 2048})
    for (const bool causal : {false, true}) {
      const std::vector<int64_t> shape{1, 8, n, 64};
      const double flops = 4.0 * 8 * 64 * static_cast<double>(n * n) * (causal ? 0.5 : 1);
      const auto make = [=] {
        return Operands{random_operand(shape, 20), random_operand(shape, 21), random_operand(shape, 22),
                        random_operand(shape, 23)};
      };
      const std::string what = fmt::format("{}{}", n, causal ? ", causal" : "");
      g.cases.push_back(compared("forward " + what, "attention", make,
                                 [=](const std::vector<Tensor>& x) {
                                   return attention(x[0], x[1], x[2], Tensor(), Tensor(), causal);
                                 },
                                 flops, {causal ? 1.0 : 0.0}));
      g.cases.push_back(
          compared("backward " + what, "attention_backward", make,
                   [=, y = std::make_shared<Tensor>(),
                    leaf = std::make_shared<std::vector<Tensor>>()](const std::vector<Tensor>& x) {
                     if (leaf->empty()) {
                       for (int i = 0; i < 3; ++i)
                         leaf->push_back(x[static_cast<size_t>(i)].detach().requires_grad(true));
                       *y = attention((*leaf)[0], (*leaf)[1], (*leaf)[2], Tensor(), Tensor(), causal);
                     }
                     for (auto& t : *leaf) t.clear_grad();
                     y->backward(x[3], false, true);
                     return (*leaf)[0].grad();
                   },
                   2.5 * flops, {causal ? 1.0 : 0.0}));
    }
  return g;
}

// Each distinct convolution of ResNet-50, one image: channels, filters, size of x, kernel, stride.
Group convolutions(int threads) {
  Group g{"conv2d of ResNet-50", threads, 0.4, 0, {}};
  for (const auto& [c, o, s, k, stride] : std::initializer_list<std::array<int64_t, 5>>{
           {3, 64, 224, 7, 2},     {64, 64, 56, 1, 1},    {64, 64, 56, 3, 1},    {64, 256, 56, 1, 1},
           {256, 64, 56, 1, 1},    {256, 128, 56, 1, 1},  {128, 128, 56, 3, 2},  {128, 512, 28, 1, 1},
           {256, 512, 56, 1, 2},   {512, 128, 28, 1, 1},  {128, 128, 28, 3, 1},  {512, 256, 28, 1, 1},
           {256, 256, 28, 3, 2},   {256, 1024, 14, 1, 1}, {512, 1024, 28, 1, 2}, {1024, 256, 14, 1, 1},
           {256, 256, 14, 3, 1},   {1024, 512, 14, 1, 1}, {512, 512, 14, 3, 2},  {512, 2048, 7, 1, 1},
           {1024, 2048, 14, 1, 2}, {2048, 512, 7, 1, 1},  {512, 512, 7, 3, 1}}) {
    const int64_t padding = k / 2, count = (s + 2 * padding - k) / stride + 1;
    const double flops = 2.0 * static_cast<double>(o * c * k * k * count * count);
    g.cases.push_back(compared(
        fmt::format("{} -> {}, {}x{}, {}x{} / {}", c, o, s, s, k, k, stride), "conv2d",
        [=, c = c, o = o, s = s, k = k] {
          return Operands{random_operand({1, c, s, s}, 30), random_operand({o, c, k, k}, 31)};
        },
        [=, stride = stride](const std::vector<Tensor>& x) {
          return conv(x[0], x[1], Shape{stride, stride}, Shape{padding, padding, padding, padding});
        },
        flops, {static_cast<double>(stride), static_cast<double>(padding)}));
  }
  return g;
}

// A program in a session whose inputs are set: the cost of a run alone.
std::shared_ptr<runtime::Session> session_of(const Traced& traced, std::span<const runtime::HostTensor> in) {
  auto program = std::make_shared<const program::CompiledProgram>(
      value_or_raise(compiler::compile(*traced.graph, {}, {.name = "bench"})));
  std::shared_ptr<runtime::Session> session = value_or_raise(
      runtime::Session::create(program, value_or_raise(runtime::devices_for("native", Policy())), Policy()));
  raise_if(session->set_inputs(in));
  return session;
}

// relu(a x + b) over 16 M elements as one region; the peer is a copy of as many bytes.
Group chains(int threads) {
  Group g{"relu(a x + b), 16 M", threads, 0.85, 0, {}};
  constexpr int64_t n = int64_t{16} << 20;
  g.cases.push_back(
      {"", "compiled region, beside a copy",
       [=] {
         const Traced traced = trace(
             [](const std::vector<Tensor>& in) { return std::vector<Tensor>{relu(in[0] * 1.5 + -0.25)}; },
             {{"x", {DType::f32, {n}}}});
         const auto x = random_operand({n}, 40).values;
         const auto bytes = std::as_bytes(std::span(x));
         const runtime::HostTensor in{{DType::f32, {n}}, {bytes.begin(), bytes.end()}};
         const auto session = session_of(traced, {&in, 1});
         if (session->schedule().steps.size() != 1) throw std::logic_error("the chain is not one region");
         raise_if(session->execute());
         const auto out = value_or_raise(session->outputs())[0].bytes;
         for (size_t i = 0; i < x.size(); ++i)
           if (std::abs(reinterpret_cast<const float*>(out.data())[i] - std::max(0.0f, 1.5f * x[i] - 0.25f)) >
               1e-6f * (1 + std::abs(x[i])))
             throw std::logic_error("the chain gave a wrong result");
         return Task{[=] { raise_if(session->execute()); }, {}};
       },
       [] { return std::vector<PeerTask>{{"copy", {lab::best_copy(static_cast<size_t>(n) * 4), {}}}}; }});
  return g;
}

Group dispatch() {
  // Reach: at most 0.35 of the peer's time.
  Group g{"calls", 1, 1 / 0.35, 1 / 0.35, {}};
  const auto small = [] { return Operands{random_operand({16}, 7), random_operand({16}, 8)}; };
  g.cases.push_back(compared("add of 16 elements", "add", small,
                             [](const std::vector<Tensor>& x) { return add(x[0], x[1]); }));
  g.cases.push_back(
      compared("10 products, forward and backward", "chain10", small, [](const std::vector<Tensor>& x) {
        Tensor w = x[1].detach(), y = x[0];
        w.requires_grad(true);
        for (int i = 0; i < 10; ++i) y = mul(y, w);
        y.backward(x[0]);
        return w.grad();
      }));
  return g;
}

}  // namespace

std::vector<Group> all_groups() {
  const int threads = static_cast<int>(std::min(2u, std::max(1u, std::thread::hardware_concurrency())));
  std::vector<Group> all{products(1)};
  if (threads > 1) all.push_back(products(threads));
  all.push_back(odd_products(threads));
  if (threads > 1) all.push_back(worth_of_threads(threads));
  all.push_back(rows(threads));
  all.push_back(attentions(threads));
  all.push_back(convolutions(threads));
  all.push_back(chains(threads));
  all.push_back(dispatch());
  all.push_back(generations(threads));
  all.push_back(generation_in_halves(threads));
  for (auto& g : training_groups(threads)) all.push_back(std::move(g));
  all.push_back(determinism_prices(threads));
  all.push_back(overlap(threads));
  all.push_back(sequences(threads));
  all.push_back(packing(threads));
  all.push_back(written_by_hand(threads));
  all.push_back(rows_beside_copies(threads));
  return all;
}

}  // namespace weft::speed
