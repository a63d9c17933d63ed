#include "ops/shared/einsum.h"

#include "base/dims.h"
#include "fuzz/target.h"
#include "ir/graph.h"

namespace weft::fuzz {

// One call of the op: its shape rule and its lowering agree.
static void lower(const std::string& equation, const std::vector<Shape>& shapes) {
  const ir::OpDef& op = *ir::find_op("einsum");
  if (shapes.empty() || shapes.size() > op.n_inputs) return;
  ir::Graph g;
  std::vector<ir::Value> values;
  for (const Shape& s : shapes) values.push_back(g.input(fmt::format("x{}", values.size()), {DType::f32, s}));
  std::vector<const TensorType*> types(op.n_inputs, nullptr);
  for (size_t i = 0; i < values.size(); ++i) types[i] = &g.type(values[i]);
  const AttrValue attrs[] = {equation};
  auto ruled = op.infer(ir::Types(types), attrs);
  if (refused(ruled)) return;
  values.resize(op.n_inputs);
  const TensorType wanted = (*ruled)[0];
  ir::Value made;
  if (refused_by([&] { made = ir::lower_einsum(g, equation, values); })) return;  // a size that no Dim holds
  expect(g.type(made) == wanted, "a lowered einsum has the type of its rule, " + text(wanted));
  g.output("y", made);
  const Status valid = ir::verify(g);
  expect(valid.ok(), "a lowered einsum is a valid graph: " + valid.text());
}

// An equation, and below it a shape a line: "ij,jk->ik\n[2, 3]\n[3, n]".
void target(std::string_view input) {
  const std::vector<Symbol> symbols = {{"n", 1, 9}, {"m", 1, 9}};
  const size_t first = std::min(input.find('\n'), input.size());
  const std::string equation(input.substr(0, first));
  std::vector<Shape> shapes;
  for (std::string_view rest = input.substr(first); !rest.empty() && shapes.size() < 12;) {
    rest.remove_prefix(1);
    const size_t end = std::min(rest.find('\n'), rest.size());
    auto shape = read_shape(rest.substr(0, end), symbols);
    if (refused(shape) || shape->size() > 8) return;
    for (const Dim d : *shape)
      if (d.min() < 0 || d.max() > 1 << 20) return;  // sizes that a tensor may have
    shapes.push_back(*shape);
    rest.remove_prefix(end);
  }
  auto parsed = ir::parse_einsum(equation, shapes);
  if (refused(parsed)) return;
  for (const int label : parsed->result)
    expect(label >= 0 && static_cast<size_t>(label) < parsed->sizes.size(), "the result names axes");
  if (shapes.size() > 1) expect(ir::pairwise(*parsed).size() == shapes.size() - 1, "a step joins two values");
  lower(equation, shapes);
}

}  // namespace weft::fuzz
