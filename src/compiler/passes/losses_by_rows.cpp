#include <algorithm>
#include <map>
#include <optional>

#include "compiler/match.h"
#include "compiler/module.h"
#include "compiler/uses.h"

// The scores of all tokens for all words are the largest tensor of a language model: gigabytes, of which
// nothing is left but a loss and two gradients. Where they are larger than Options::most_scores, the last
// layer, the loss and the gradients run on some rows at a time, and the scores of others are not there. With
// scores s = x wᵀ, d the gradient of s, and a part of the rows after the other:
//
//   d, loss = cross_entropy_with_grad(s of the part), dx of the part = d w, dw += dᵀ x of the part.
namespace weft::compiler {
namespace {

constexpr int64_t kMostParts = 16;
constexpr int64_t kRowsOfTile = 128;       // of which the rows of a part are a multiple, as products want it
constexpr int64_t kMostCounted = 1 << 24;  // rows that f32 counts exactly

using Values = std::vector<ir::Value>;

/// A last layer with its loss, by the places of nodes and by values.
struct Head {
  size_t loss = 0;
  std::vector<size_t> nodes;  // all of them, and the views between
  int32_t x = -1, weight = -1;
  int32_t dx = -1, dweight = -1;  // -1: not wanted
  int64_t rows = 0, width = 0, classes = 0;
};

bool is_const(const Shape& shape) {
  return std::ranges::all_of(shape, [](Dim d) { return d.is_const(); });
}
bool is_set(const ir::Node& node, const char* name) { return std::get<int64_t>(attr(node, name)) != 0; }

class Finder {
 public:
  explicit Finder(const ir::Graph& g) : g_(g), uses_(g) {}

  /// Of the node that makes this value.
  std::optional<Head> head_of(int32_t of_loss) const {
    const size_t loss = uses_.maker[Uses::at(of_loss)];
    const ir::Node& node = g_.nodes[loss];
    const bool with_grad = node.op->name == std::string_view("cross_entropy_with_grad");
    if (!with_grad && node.op->name != std::string_view("cross_entropy")) return {};
    const TensorType& scores = type(node.inputs[0]);
    if (node.inputs.back() >= 0 || is_float(type(node.inputs[1]).dtype) || is_half(type(of_loss).dtype) ||
        !is_const(scores.shape))
      return {};
    Head head{.loss = loss, .nodes = {loss}};
    head.rows = scores.shape[0].value(), head.classes = scores.shape[1].value();
    if (head.rows >= kMostCounted || !find_layer(head, node.inputs[0])) return {};
    if (with_grad && !find_gradients(head, node.outputs[0])) return {};
    for (const int32_t id : {head.x, head.weight, node.inputs[1]})
      if (uses_.overwriter[Uses::at(id)] != Uses::kNone && uses_.overwriter[Uses::at(id)] < loss) return {};
    return head;
  }

 private:
  const TensorType& type(int32_t id) const { return g_.types[Uses::at(id)]; }
  bool is(size_t node, const char* op) const {
    return node != Uses::kNone && g_.nodes[node].op->name == std::string_view(op);
  }
  // The value that this one is a view of.
  int32_t viewed(int32_t id) const {
    for (size_t n = uses_.maker[Uses::at(id)]; is(n, "reshape"); n = uses_.maker[Uses::at(id)])
      id = g_.nodes[n].inputs[0];
    return id;
  }

  bool find_layer(Head& head, int32_t scores) const {
    for (;; scores = g_.nodes[head.nodes.back()].inputs[0]) {
      const auto& readers = uses_.readers[Uses::at(scores)];
      if (uses_.kept[Uses::at(scores)] || std::ranges::count(readers, readers[0]) != std::ssize(readers))
        return false;
      const size_t maker = uses_.maker[Uses::at(scores)];
      if (!is(maker, "reshape") && !is(maker, "linear")) return false;
      head.nodes.push_back(maker);
      if (is(maker, "linear")) break;
    }
    const ir::Node& layer = g_.nodes[head.nodes.back()];
    head.x = layer.inputs[0], head.weight = layer.inputs[1];
    head.width = type(head.weight).shape[1].max();
    return layer.inputs[2] < 0 && layer.run == g_.nodes[head.loss].run && is_const(type(head.weight).shape) &&
           type(head.weight).shape[0] == Dim(head.classes);
  }

  // What reads the gradient of the scores: products with the weight and with x, once each, nothing else.
  bool find_gradients(Head& head, int32_t d) const {
    if (uses_.kept[Uses::at(d)]) return false;
    for (const size_t n : uses_.readers[Uses::at(d)]) {
      const ir::Node& node = g_.nodes[n];
      head.nodes.push_back(n);
      if (is(n, "reshape")) {
        if (!find_gradients(head, node.outputs[0])) return false;
        continue;
      }
      if (!is(n, "matmul") || node.inputs[0] != d || is_set(node, "transpose_b")) return false;
      if (!(type(d).shape == Shape{head.rows, head.classes})) return false;
      const bool of_weight = is_set(node, "transpose_a");
      int32_t& result = of_weight ? head.dweight : head.dx;
      if (result >= 0) return false;
      result = node.outputs[0];
      if (of_weight ? viewed(node.inputs[1]) != viewed(head.x) : node.inputs[1] != head.weight) return false;
    }
    return true;
  }

  const ir::Graph& g_;
  const Uses uses_;
};

/// How many rows are taken at a time; all of them where parts would not save memory. Each part's gradient of
/// the weight is there until the parts are added, unless the device can add to what is there.
int64_t rows_at_a_time(const Head& head, uint64_t element, uint64_t most) {
  const uint64_t bytes = static_cast<uint64_t>(head.rows * head.classes) * element;
  if (bytes <= most) return head.rows;
  const auto wanted = static_cast<int64_t>(std::min<uint64_t>((bytes + most - 1) / most, kMostParts));
  int64_t rows = (head.rows + wanted - 1) / wanted;
  rows = (rows + kRowsOfTile - 1) / kRowsOfTile * kRowsOfTile;
  const int64_t parts = (head.rows + rows - 1) / rows;
  return head.dweight >= 0 && head.rows - rows <= parts * head.width ? head.rows : rows;
}

/// Writes a head in parts.
class Writer {
 public:
  Writer(ir::Graph& g, const Head& head, const ir::Node& loss) : g_(g), head_(head), loss_(loss) {}

  /// By the values that they stand for: the loss, dx and dweight.
  std::map<int32_t, int32_t> write(int64_t rows) {
    const ir::Value x = g_.reshape(g_.value(head_.x), {head_.rows, head_.width});
    const ir::Value target = g_.value(loss_.inputs[1]);
    const bool summed = is_set(loss_, "summed"), with_grad = loss_.outputs.size() == 2;
    const ir::Value divisor = summed ? ir::Value() : counted(target);
    ir::Value share;
    if (with_grad) share = g_.value(loss_.inputs[2]);
    if (with_grad && !summed) share = g_.div(share, divisor);
    for (int64_t begin = 0; begin < head_.rows; begin += rows)
      write_part(part(x, begin, rows), part(target, begin, rows), share);
    const ir::Value loss = sum(losses_);
    std::map<int32_t, int32_t> made = {{loss_.outputs.back(), (summed ? loss : g_.div(loss, divisor)).id()}};
    if (head_.dx >= 0) made[head_.dx] = g_.call("concat", dx_, {{"axis", int64_t{0}}})[0].id();
    if (head_.dweight >= 0) made[head_.dweight] = sum(dweight_).id();
    return made;
  }

 private:
  ir::Value part(ir::Value v, int64_t begin, int64_t rows) {
    const int64_t end = std::min(begin + rows, head_.rows);
    return g_.one("slice", {v}, {{"axis", int64_t{0}}, {"start", Shape{begin}}, {"stop", Shape{end}}});
  }
  // How many targets are not ignored.
  ir::Value counted(ir::Value target) {
    const auto ignored = static_cast<double>(std::get<int64_t>(attr(loss_, "ignore_index")));
    const ir::Value is_ignored = g_.equal(target, g_.full(ignored, {}, target.dtype()));
    const DType t = g_.types[Uses::at(loss_.outputs.back())].dtype;
    return g_.sum_all(g_.where(is_ignored, 0, g_.full(1, target.shape(), t)));
  }
  void write_part(ir::Value x, ir::Value target, ir::Value share) {
    const ir::Value weight = g_.value(head_.weight), scores = g_.one("linear", {x, weight});
    const Attr ignored{"ignore_index", attr(loss_, "ignore_index")},
        smoothing{"label_smoothing", attr(loss_, "label_smoothing")}, wide{"wide", attr(loss_, "wide")},
        summed{"summed", int64_t{1}};
    if (!share) {
      losses_.push_back(g_.one("cross_entropy", {scores, target}, {ignored, smoothing, wide, summed}));
      return;
    }
    const std::array in = {scores, target, share};
    const auto both = g_.call("cross_entropy_with_grad", in, {ignored, smoothing, wide, summed});
    losses_.push_back(both[1]);
    if (head_.dx >= 0) dx_.push_back(g_.matmul(both[0], weight));
    if (head_.dweight >= 0) dweight_.push_back(g_.matmul(both[0], x, true, false));
  }
  // Halves are added in f32.
  ir::Value sum(const Values& parts) {
    const DType t = parts[0].dtype();
    const auto wide = [&](ir::Value v) { return is_half(t) ? g_.cast(v, DType::f32) : v; };
    ir::Value all = wide(parts[0]);
    for (size_t i = 1; i < parts.size(); ++i) all = g_.add(all, wide(parts[i]));
    return is_half(t) ? g_.cast(all, t) : all;
  }

  ir::Graph& g_;
  const Head& head_;
  const ir::Node& loss_;
  Values losses_, dx_, dweight_;
};

void rename(ir::Graph& g, const std::map<int32_t, int32_t>& made) {
  const auto renamed = [&](int32_t& id) {
    if (const auto to = made.find(id); to != made.end()) id = to->second;
  };
  for (auto& node : g.nodes) std::ranges::for_each(node.inputs, renamed);
  for (auto& o : g.outputs) renamed(o.value);
  for (auto& s : g.states) renamed(s.after);
}

// The parts stand where the loss was: what else reads its operands and results comes before or after it
// still.
void write_in_parts(ir::Graph& g, const Head& head, int64_t rows) {
  std::vector<ir::Node> old = std::exchange(g.nodes, {});
  const std::string scope = std::exchange(g.scope, {});
  const uint32_t run = std::exchange(g.run, old[head.loss].run);
  g.from = old[head.loss].from;
  std::map<int32_t, int32_t> made;
  for (size_t i = 0; i < old.size(); ++i) {
    if (i == head.loss) {
      g.scope = old[i].where.substr(0, std::min(old[i].where.rfind('.'), old[i].where.size()));
      made = Writer(g, head, old[i]).write(rows);
    }
    if (std::ranges::find(head.nodes, i) == head.nodes.end()) g.nodes.push_back(std::move(old[i]));
  }
  g.scope = scope, g.run = run, g.from.clear();
  rename(g, made);
}

}  // namespace

Status compute_losses_by_rows(Module& m, const Options& options) {
  if (!options.fuse) return {};
  std::vector<int32_t> losses;
  for (const ir::Node& node : m.graph.nodes)
    if (std::string_view(node.op->name).starts_with("cross_entropy")) losses.push_back(node.outputs.back());
  for (const int32_t loss : losses) {
    const Finder finder(m.graph);
    const auto head = finder.head_of(loss);
    if (!head) continue;
    const TensorType& scores = m.graph.types[Uses::at(m.graph.nodes[head->loss].inputs[0])];
    const int64_t rows = rows_at_a_time(*head, byte_size(scores.dtype), options.most_scores);
    if (rows < head->rows) write_in_parts(m.graph, *head, rows);
  }
  return Status(m.graph.status());
}

}  // namespace weft::compiler
