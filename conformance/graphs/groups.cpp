#include "conformance/graphs/groups.h"

#include <algorithm>

#include "conformance/inputs.h"
#include "conformance/seam/candidates.h"
#include "runtime/session.h"
#include "seam/prepared_kernel.h"

namespace weft::conformance {
namespace {

/// A graph with the numbers of its inputs.
class Maker {
 public:
  Maker(DType t, const GroupSize& s) : size(s), dtype_(t) {}

  const GroupSize size;
  ir::Value input(Dims shape) {
    const auto v = of_.graph.input(fmt::format("x{}", of_.graph.inputs.size()), {dtype_, to_shape(shape)});
    for (uint64_t set = 0; set < kDataSets; ++set) {
      const Case c{.inputs = {normal(shape)}};
      give(v.id(), set, exactly(make_inputs(c, dtype_, 2 * static_cast<uint64_t>(v.id()) + set)[0]));
    }
    return v;
  }
  ir::Value layer() {
    return of_.graph.one(
        "linear", {input({size.rows, size.terms}), input({size.columns, size.terms}), input({size.columns})});
  }
  ir::Value row() { return input({size.columns}); }
  ir::Value rows() { return input({size.rows, size.columns}); }
  ir::Value one(std::string_view op, std::initializer_list<ir::Value> in,
                std::initializer_list<Attr> attrs = {}) {
    return of_.graph.one(op, in, attrs);
  }
  void output(ir::Value v) { of_.graph.output(fmt::format("y{}", of_.graph.outputs.size()), v); }

  /// With the results of all nodes, if it is to be judged.
  Result<GraphCase> end(bool judged) {
    WEFT_CHECK(Status(of_.graph.status()));
    for (const auto& node : of_.graph.nodes) {
      if (!judged) break;
      OperandSets operands;
      for (size_t set = 0; set < kDataSets; ++set)
        for (const int32_t id : node.inputs)
          operands[set].push_back(id < 0 ? nullptr : &of_.values[set][static_cast<size_t>(id)]);
      WEFT_TRY(auto bounded, bound_call(*node.op, node.attrs, operands));
      for (size_t set = 0; set < kDataSets; ++set)
        for (size_t k = 0; k < node.outputs.size(); ++k)
          give(node.outputs[k], set, std::move(bounded[set][k]));
    }
    return std::move(of_);
  }

 private:
  void give(int32_t id, size_t set, Bounded value) {
    auto& all = of_.values[set];
    if (all.size() < of_.graph.types.size()) all.resize(of_.graph.types.size());
    all[static_cast<size_t>(id)] = std::move(value);
  }

  GraphCase of_;
  const DType dtype_;
};

void linear_add(Maker& m) {
  const auto y = m.layer();
  m.output(m.one("add", {y, m.rows()}));
}
void linear_gelu(Maker& m) {
  const auto y = m.layer();
  m.output(y);  // which the gradient of gelu reads
  m.output(m.one("gelu", {y}, {{"approximate", int64_t{1}}}));
}
void matmul_gelu_grad(Maker& m) {
  const auto dy =
      m.one("matmul", {m.input({m.size.rows, m.size.terms}), m.input({m.size.terms, m.size.columns})});
  m.output(m.one("gelu_grad", {m.rows(), dy}, {{"approximate", int64_t{1}}}));
}
void add_rms_norm(Maker& m) {
  const auto sum = m.one("add", {m.rows(), m.rows()});
  m.output(sum);
  m.output(m.one("rms_norm", {sum, m.row()}));
}
void add_layer_norm(Maker& m) {
  const auto sum = m.one("add", {m.rows(), m.rows()});
  m.output(sum);
  m.output(m.one("layer_norm", {sum, m.row(), m.row()}));
}

struct Known {
  std::string_view group;
  void (*make)(Maker&);
};
constexpr Known kKnown[] = {{"linear_add", linear_add},
                            {"linear_gelu", linear_gelu},
                            {"matmul_gelu_grad", matmul_gelu_grad},
                            {"add_rms_norm", add_rms_norm},
                            {"add_layer_norm", add_layer_norm}};

/// While it lives, the group runs by this kernel, or call by call.
seam::Without only_by(const weft_kernel& kernel) {
  return seam::Without([&kernel](const weft_kernel& k) {
    const bool other = &k != &kernel && std::string_view(k.op) == kernel.op;
    return std::string(other ? "another one is asked for" : "");
  });
}

}  // namespace

bool has_group(std::string_view group) {
  return std::ranges::any_of(kKnown, [&](const Known& k) { return k.group == group; });
}

Result<GraphCase> group_case(std::string_view group, DType dtype, const GroupSize& size, bool judged) {
  const auto* known = std::ranges::find_if(kKnown, [&](const Known& k) { return k.group == group; });
  if (known == std::end(kKnown)) return fail(Code::unsupported, "no graph here becomes {}", group);
  Maker made(dtype, size);
  known->make(made);
  return made.end(judged);
}

Result<bool> group_reaches(const GraphCase& c, seam::Device& device, const weft_kernel& kernel) {
  const auto by = only_by(kernel);
  WEFT_TRY(auto program, compile_graph_case(c));
  WEFT_TRY(const auto session, runtime::Session::create(std::move(program), {&device}, Policy{}));
  std::vector<HostTensor> in;
  for (const auto& i : c.graph.inputs)
    in.push_back(host_tensor(c.values[0][static_cast<size_t>(i.value)].value));
  WEFT_CHECK(session->set_inputs(in));
  return std::ranges::any_of(session->schedule().steps, [&](const link::Step& s) {
    return s.prepared && &s.prepared->kernel == &kernel;
  });
}

GraphVerdict run_group_case(const GraphCase& c, const std::string& backend, const weft_kernel& kernel) {
  const auto by = only_by(kernel);
  return run_graph_case(c, backend);
}

}  // namespace weft::conformance
