#include "eager/tape.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "eager/tensor_builder.h"
#include "eager/trace_state.h"

namespace weft::eager {
namespace {
std::atomic<uint64_t> sequence{0};
}

uint64_t next_sequence() { return ++sequence; }

Edge edge_to(const Tensor& t) {
  if (!t || !t.impl()->requires_grad) return {};
  const auto& extra = t.impl()->extra;
  if (extra && extra->node) return {Tensor(), extra->node, extra->output};
  return {t, nullptr, 0};
}

Result<Saved> save(const Tensor& t) {
  if (TraceState* trace = active_trace()) {
    // A graph value never changes, so keeping its current id is enough.
    WEFT_TRY(const auto v, trace->value_of(t));
    return Saved{trace->wrap(v), 0};
  }
  return Saved{alias(t), t.impl()->buffer->version.load(std::memory_order_relaxed)};
}

namespace {

Status check_version(const Saved& s, const TapeNode& node, const Edge& edge, const char* operand) {
  if (TraceState* trace = active_trace(); trace && edge.leaf) {
    // The leaf stands for its newest value, which an update since then has changed.
    WEFT_TRY(const auto now, trace->value_of(edge.leaf));
    WEFT_TRY(const auto then, trace->value_of(s.tensor));
    if (now == then) return {};
    return invalid("backward of {}: its '{}' was overwritten in place since; run backward before the update",
                   node.op->name, operand);
  }
  if (!s.tensor.impl()->buffer) return {};
  const uint32_t now = s.tensor.impl()->buffer->version.load(std::memory_order_relaxed);
  if (now == s.version) return {};
  return invalid(
      "backward of {}: its '{}' was overwritten in place since ({} updates); run backward before the update",
      node.op->name, operand, now - s.version);
}

Tensor restore(const Saved& s, const Edge& edge) {
  Tensor t = alias(s.tensor);
  if (!edge) return t;
  if (edge.leaf) return edge.leaf;
  t.impl()->requires_grad = true;
  t.impl()->more().node = edge.node, t.impl()->more().output = edge.output;
  return t;
}

// Sums the gradients of one result or leaf. Two halves are added directly, which rounds once, so the second
// waits: if a third comes, the sum is kept in f32 until it is taken.
class Sum {
 public:
  Status add(const Tensor& more, seam::Device* device) {
    if (!total_) {
      total_ = more;
      return {};
    }
    const bool half = is_half(more.dtype());
    if (half && !waiting_ && total_.dtype() == more.dtype()) {
      waiting_ = more;
      return {};
    }
    TensorBuilder b;
    b.device = device;
    const auto wide = [&](const Tensor& t) { return half ? b.cast(b.wrap(t), DType::f32) : b.wrap(t); };
    auto sum = wide(total_);
    if (waiting_) sum = b.add(sum, wide(waiting_));
    total_ = b.tensor(b.add(sum, wide(more))), waiting_ = Tensor();
    return b.status();
  }
  /// Empty if there were none.
  Result<Tensor> take(DType dtype, seam::Device* device) {
    if (!total_ || (!waiting_ && total_.dtype() == dtype)) return std::move(total_);
    TensorBuilder b;
    b.device = device;
    const auto total = b.cast(b.wrap(total_), dtype);
    Tensor sum = b.tensor(waiting_ ? b.add(total, b.wrap(waiting_)) : total);
    total_ = waiting_ = Tensor();
    WEFT_CHECK(b.status());
    return sum;
  }

 private:
  Tensor total_, waiting_;
};

// Accumulated gradients: of nodes, by result, newest node first; and of leaves, which are set at the end, all
// or none.
struct Arrived {
  struct Leaf {
    Tensor leaf;
    Sum grad;
  };
  std::map<uint64_t, std::pair<std::shared_ptr<TapeNode>, std::vector<Sum>>, std::greater<>> nodes;
  std::vector<Leaf> leaves;  // in order of arrival, so traces are reproducible
  std::unordered_map<TensorImpl*, size_t> place;

  Leaf& at(const Tensor& leaf) {
    const auto [where, fresh] = place.try_emplace(leaf.impl(), leaves.size());
    if (fresh) leaves.push_back({leaf, {}});
    return leaves[where->second];
  }
};

class TapeContext final : public ir::GradContext {
 public:
  TapeContext(TensorBuilder& b, const TapeNode& node, std::vector<Tensor> douts)
      : b_(b), node_(node), douts_(std::move(douts)) {}

  ir::Value in(int i) const override { return saved(node_.in, i, node_.op->inputs, true); }
  ir::Value out(int i) const override { return saved(node_.out, i, node_.op->outputs, false); }
  ir::Value dout(int i) const override {
    auto& d = douts_[static_cast<size_t>(i)];
    const auto& type = node_.out_types[static_cast<size_t>(i)];
    return d ? b_.wrap(d) : b_.full(0, type.shape, type.dtype);
  }
  bool flows(int i) const override { return static_cast<bool>(douts_[static_cast<size_t>(i)]); }
  bool wants(int i) const override { return static_cast<bool>(node_.edges[static_cast<size_t>(i)]); }
  bool has(int i) const override { return node_.present >> i & 1; }
  const TensorType& in_type(int i) const override { return node_.in_types[static_cast<size_t>(i)]; }
  const TensorType& out_type(int i) const override { return node_.out_types[static_cast<size_t>(i)]; }

 private:
  template <class Names>
  ir::Value saved(const std::vector<Saved>& list, int i, const Names& names, bool input) const {
    const auto k = static_cast<size_t>(i);
    if (k >= list.size() || !list[k].tensor) {
      b_.fail(fail(Code::internal, "gradient of {} reads '{}', which its `saves` does not name",
                   node_.op->name, names[k]));
      return dout(0);
    }
    const Edge self{Tensor(), std::const_pointer_cast<TapeNode>(node_.shared_from_this()),
                    static_cast<uint32_t>(i)};
    const Edge& edge = input ? node_.edges[k] : self;
    if (Status s = check_version(list[k], node_, edge, names[k]); !s.ok()) b_.fail(std::move(s));
    return b_.wrap(restore(list[k], edge));
  }

  TensorBuilder& b_;
  const TapeNode& node_;
  std::vector<Tensor> douts_;
};

// Those of a user's function, which are checked: a rule may say anything.
Result<std::vector<Tensor>> custom_gradients(const TapeNode& node, std::vector<Tensor> douts,
                                             seam::Device* device) {
  TensorBuilder b;
  b.device = device;
  for (size_t k = 0; k < douts.size(); ++k)
    if (!douts[k]) douts[k] = b.tensor(b.full(0, node.out_types[k].shape, node.out_types[k].dtype));
  WEFT_CHECK(b.status());
  const AsCalledFrom anywhere(nullptr);
  WEFT_TRY(auto grads, node.custom->run(node, douts));
  if (grads.size() != node.edges.size())
    return invalid(
        "backward of {}: its rule gave {} gradients for {} inputs; give one for each, empty where there is "
        "none",
        node.op->name, grads.size(), node.edges.size());
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i] && node.edges[i] && !(grads[i].type() == node.in_types[i]))
      return invalid("backward of {}: the gradient of input {} is {}, and the input {}; they must be alike",
                     node.op->name, i, text(grads[i].type()), text(node.in_types[i]));
  return grads;
}

Result<std::vector<Tensor>> gradients(const TapeNode& node, std::vector<Tensor> douts, seam::Device* device) {
  const AsCalledFrom there(node.from);
  TensorBuilder b;
  b.device = device;
  const TapeContext context(b, node, std::move(douts));
  const auto values = ir::differentiate(b, *node.op, context, node.attrs);
  WEFT_CHECK(b.status());
  std::vector<Tensor> grads;
  for (const auto v : values) grads.push_back(b.tensor(v));
  return grads;
}

Status hand_on(const Edge& edge, const Tensor& grad, Arrived& arrived, seam::Device* device) {
  if (edge.leaf) return arrived.at(edge.leaf).grad.add(grad, device);
  auto& [node, douts] = arrived.nodes[edge.node->sequence];
  node = edge.node;
  douts.resize(node->out_types.size());
  return douts[edge.output].add(grad, device);
}

Result<std::vector<Tensor>> expanded(const TapeNode& node, const std::vector<Tensor>& operands,
                                     seam::Device* device) {
  const AsCalledFrom there(node.from);
  TensorBuilder b;
  b.device = device;
  ir::ValueList in;
  for (const Tensor& t : operands) in.push_back(b.wrap(t));
  const auto values = ir::expand(b, *node.op, in, node.attrs);
  WEFT_CHECK(b.status());
  std::vector<Tensor> results;
  for (const auto v : values) results.push_back(b.tensor(v));
  return results;
}

const char* operand_name(const TapeNode& node, size_t i) { return node.rerun ? "input" : node.op->inputs[i]; }

// A composite without a gradient rule reruns its decomposition, and a checkpointed node its function, on the
// tape and attached to the operands' history. Its gradients continue from there. The new nodes are the
// newest, so the backward pass processes them next; and they are ordinary history, so second derivatives
// work.
Status open_up(const TapeNode& node, const std::vector<Tensor>& douts, Arrived& arrived,
               seam::Device* device) {
  std::vector<Tensor> operands, results;
  for (size_t i = 0; i < node.in.size(); ++i) {
    const Saved& s = node.in[i];
    if (s.tensor) WEFT_CHECK(check_version(s, node, node.edges[i], operand_name(node, i)));
    operands.push_back(s.tensor ? restore(s, node.edges[i]) : Tensor());
  }
  {
    const GradMode on(true);
    if (node.rerun) {
      const AsCalledFrom anywhere(nullptr);
      results = node.rerun->run(operands);
    } else {
      WEFT_TRY(results, expanded(node, operands, device));
    }
  }
  for (size_t k = 0; k < results.size(); ++k) {
    const Edge edge = edge_to(results[k]);
    if (edge && douts[k]) WEFT_CHECK(hand_on(edge, douts[k], arrived, device));
  }
  return {};
}

// Serializes threads that share a leaf.
Status give_leaves(Arrived& arrived, seam::Device* device) {
  static std::mutex turns;
  const std::lock_guard lock(turns);
  std::vector<Tensor> sums;
  for (auto& [leaf, grad] : arrived.leaves) {
    if (leaf.grad()) WEFT_CHECK(grad.add(leaf.grad(), device));
    WEFT_TRY(sums.emplace_back(), grad.take(leaf.dtype(), device));
  }
  for (size_t i = 0; i < sums.size(); ++i) arrived.leaves[i].leaf.impl()->more().grad = std::move(sums[i]);
  return {};
}

Status no_gradient(const ir::OpDef& op) {
  return fail(
      Code::unsupported,
      "{} has no gradient, and an operand requires one; detach() the operand, or call it under NoGrad",
      op.name);
}

}  // namespace

// Frees memory of the forward pass as the backward pass proceeds.
void TapeNode::give_up() { in.clear(), out.clear(), rerun.reset(), custom.reset(); }

// Destroys long chains in a loop: the default is recursive, with a stack frame per op.
TapeNode::~TapeNode() {
  std::vector<std::shared_ptr<TapeNode>> pending;
  const auto take = [&](TapeNode& n) {
    for (auto& e : n.edges)
      if (e.node) pending.push_back(std::move(e.node));
  };
  take(*this);
  while (!pending.empty()) {
    const auto node = std::move(pending.back());
    pending.pop_back();
    if (node.use_count() == 1) take(*node);
  }
}

Result<Tensor> restored(const Saved& s, const TapeNode& node, const Edge& edge, const char* what) {
  WEFT_CHECK(check_version(s, node, edge, what));
  return restore(s, edge);
}

Status record(const ir::OpDef& op, std::span<const Tensor* const> inputs, std::span<const AttrValue> attrs,
              std::span<Tensor> outputs) {
  bool any_float = false;
  for (size_t k = 0; k < outputs.size(); ++k)
    any_float |=
        is_float(outputs[k].dtype()) && (op.update_input(static_cast<int>(k)) < 0 || !op.differentiable);
  if (!any_float) return {};
  if (!op.differentiable || (op.primitive() && !op.grad)) return no_gradient(op);
  const auto node = std::make_shared<TapeNode>();
  node->op = &op, node->sequence = next_sequence(), node->attrs = {attrs.begin(), attrs.end()};
  const uint32_t saves = op.grad ? op.saves : ir::saves::inputs;
  node->in.resize(op.n_inputs), node->out.resize(outputs.size());
  for (size_t i = 0; i < op.n_inputs; ++i) {  // trailing optional operands may be missing
    const Tensor none, &t = i < inputs.size() && inputs[i] ? *inputs[i] : none;
    node->edges.push_back(edge_to(t));
    node->in_types.push_back(t ? t.type() : TensorType{});
    node->present |= uint32_t{static_cast<bool>(t)} << i;
    if (t && (saves & ir::saves::input(static_cast<int>(i)))) {
      WEFT_TRY(node->in[i], save(t));
    }
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    node->out_types.push_back(outputs[k].type());
    if (saves & ir::saves::output(static_cast<int>(k))) {
      WEFT_TRY(node->out[k], save(outputs[k]));
    }
    if (!is_float(outputs[k].dtype()) || op.update_input(static_cast<int>(k)) >= 0) continue;
    outputs[k].impl()->requires_grad = true;
    outputs[k].impl()->more().node = node, outputs[k].impl()->more().output = static_cast<uint32_t>(k);
  }
  return {};
}

static Status pass_through(TapeNode& node, std::vector<Tensor> douts, Arrived& arrived,
                           seam::Device* device) {
  if (!node.op->grad && !node.custom) return open_up(node, douts, arrived, device);
  WEFT_TRY(auto grads, node.custom ? custom_gradients(node, std::move(douts), device)
                                   : gradients(node, std::move(douts), device));
  grads.resize(node.edges.size());
  for (size_t i = 0; i < node.edges.size(); ++i)
    if (node.edges[i] && grads[i]) WEFT_CHECK(hand_on(node.edges[i], grads[i], arrived, device));
  return {};
}

// Another thread may go back through the same node at the same time.
static Status go_back(TapeNode& node, std::vector<Tensor> douts, Arrived& arrived, seam::Device* device,
                      bool keep) {
  if (!node.claim.enter(!keep))
    return invalid("backward of {}: an earlier backward() freed what was saved; ask it to keep the history",
                   node.op->name);
  struct Leave {
    TapeNode& node;
    bool give_back;
    ~Leave() {
      if (give_back)
        node.claim.give_back();
      else if (node.claim.leave())
        node.give_up();
    }
  } leave{node, !keep};
  WEFT_CHECK(pass_through(node, std::move(douts), arrived, device));
  leave.give_back = false;
  return {};
}

// The line that a failure names is that of backward(); the op may be far from there.
static Status with_line(Status why, const TapeNode& node) {
  if (why.ok() || !node.from) return why;
  return Status(why.code(), fmt::format("{}\n  in the gradient of {}, called from {}", why.message(),
                                        node.op->name, *node.from));
}

Status backward(const Tensor& root, const Tensor& seed, bool create_graph, bool keep) {
  if (!root) return invalid("backward: the tensor is empty");
  if (!root.requires_grad())
    return invalid("backward: {} does not depend on anything that requires a gradient", text(root.type()));
  const GradMode mode(create_graph);
  const AsCalledFrom here(create_graph || active_trace() ? called_from() : nullptr);  // sums of gradients
  seam::Device* device = root.impl()->traced ? nullptr : &device_of(*root.impl());
  Tensor start = seed;
  if (!start) {
    if (!(element_count(root.shape()) == Dim(1)))
      return invalid("backward: wants one element or a seed, {} has {}", text(root.type()),
                     element_count(root.shape()).text());
    TensorBuilder b;
    b.device = device;
    start = b.tensor(b.full(1, root.shape(), root.dtype()));
    WEFT_CHECK(b.status());
  }
  if (!(start.type() == root.type()))
    return invalid("backward: the seed is {}, wanted {}", text(start.type()), text(root.type()));
  Arrived arrived;
  WEFT_CHECK(hand_on(edge_to(root), start, arrived, device));
  while (!arrived.nodes.empty()) {
    auto [node, douts] = std::move(arrived.nodes.begin()->second);
    arrived.nodes.erase(arrived.nodes.begin());
    std::vector<Tensor> sums;
    for (size_t k = 0; k < douts.size(); ++k) {
      WEFT_TRY(sums.emplace_back(), douts[k].take(node->out_types[k].dtype, device));
    }
    try {
      WEFT_CHECK(with_line(go_back(*node, std::move(sums), arrived, device, keep || create_graph), *node));
    } catch (const Error& e) {  // of a part that ran again, or of a rule
      throw Error(with_line(e.status(), *node));
    }
  }
  return give_leaves(arrived, device);
}

}  // namespace weft::eager
