#include "weft/recompute.h"

#include "eager/apply.h"
#include "eager/tape.h"
#include "eager/trace_state.h"
#include "eager/update_log.h"

namespace weft {
namespace eager {
namespace {

constexpr ir::OpDef kRecompute{.name = "recompute"};

// A copy of the current value of `t`; in a trace, a new value, which an update may overwrite.
Tensor snapshot(const Tensor& t) {
  TraceState* trace = active_trace();
  if (!trace) return copy_of(t);
  const auto v = value_or_raise(trace->value_of(t));
  const auto* reshape = ir::find_op("reshape");
  const auto copy = trace->graph.call(*reshape, std::array{v}, {AttrValue(trace->graph.type(v).shape)});
  raise_if(trace->graph.status());
  return trace->wrap(copy[0]);
}

/// While it lives, logged tensors have their values from before the first run.
class Rewound {
 public:
  explicit Rewound(const std::vector<UpdateLog::Entry>& log) : log_(log) {
    for (const auto& e : log_) {
      now_.push_back(active_trace() ? standing(e.target) : copy_of(e.target));
      if (!active_trace()) versions_.push_back(e.target.impl()->buffer->version);
      put(e.target, snapshot(e.before));
    }
  }
  ~Rewound() {
    try {
      end();
    } catch (const Error&) {  // follows another error, or the next op raises it again
    }
  }
  Rewound(const Rewound&) = delete;

 private:
  void end() const {
    for (size_t i = 0; i < now_.size(); ++i) {
      put(log_[i].target, now_[i]);
      // The same elements as before, so nodes that saved this tensor stay valid.
      if (!active_trace()) log_[i].target.impl()->buffer->version = versions_[i];
    }
  }
  static Tensor standing(const Tensor& t) {
    return active_trace()->wrap(value_or_raise(active_trace()->value_of(t)));
  }
  static void put(const Tensor& target, const Tensor& value) {
    if (TraceState* trace = active_trace()) {
      trace->rebind(target, trace->graph.value(value.impl()->traced_value));
      return;
    }
    const auto &to = *target.impl(), &from = *value.impl();
    auto& device = device_of(to);
    std::lock_guard lock(device.eager_mutex());
    raise_if(device.eager_queue().copy(*to.buffer.get(), to.c.dl.byte_offset, *from.buffer.get(),
                                       from.c.dl.byte_offset, to.bytes()));
  }

  const std::vector<UpdateLog::Entry>& log_;
  std::vector<Tensor> now_;
  std::vector<uint32_t> versions_;
};

/// In a trace, nodes recorded while it lives are not merged with equal ones of the first run.
class AnotherRun {
 public:
  AnotherRun() {
    if (TraceState* trace = active_trace()) before_ = std::exchange(trace->graph.run, ++trace->runs);
  }
  ~AnotherRun() {
    if (TraceState* trace = active_trace()) trace->graph.run = before_;
  }
  AnotherRun(const AnotherRun&) = delete;

 private:
  uint32_t before_ = 0;
};

class PartAgain final : public Rerun {
 public:
  PartAgain(ModelPart part, std::vector<UpdateLog::Entry> log, std::vector<TensorType> first)
      : part_(std::move(part)), log_(std::move(log)), first_(std::move(first)) {}
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) override {
    const AnotherRun run;
    const Rewound states(log_);
    std::vector<Tensor> results = part_(inputs);
    raise_if(compare(results));
    return results;
  }

 private:
  // Gradients of the first run's results would go on as those of others.
  Status compare(const std::vector<Tensor>& again) const {
    if (again.size() != first_.size())
      return invalid("recompute: the part gave {} results, and {} when it ran again", first_.size(),
                     again.size());
    for (size_t k = 0; k < again.size(); ++k)
      if (!again[k] || !(again[k].type() == first_[k]))
        return invalid("recompute: result {} of the part was {}, and {} when it ran again", k,
                       text(first_[k]), again[k] ? text(again[k].type()) : "empty");
    return {};
  }

  ModelPart part_;
  std::vector<UpdateLog::Entry> log_;
  std::vector<TensorType> first_;  // types of the first run's results
};

}  // namespace

UpdateLog::UpdateLog() : outer_(innermost_log) { innermost_log = this; }
UpdateLog::~UpdateLog() { innermost_log = outer_; }

void UpdateLog::note(const ir::OpDef& op, std::span<const Tensor* const> inputs) {
  for (const auto& u : op.updates) {
    if (u.input < 0) continue;
    const Tensor& target = *inputs[static_cast<size_t>(u.input)];
    const auto same = [&](const Entry& e) {
      const auto &a = *e.target.impl(), &b = *target.impl();
      return &a == &b || (a.buffer && a.buffer.get() == b.buffer.get());
    };
    if (std::ranges::none_of(entries, same)) entries.push_back({target, snapshot(target)});
  }
  if (outer_) outer_->note(op, inputs);
}

}  // namespace eager

std::vector<Tensor> recompute(const ModelPart& part, const std::vector<Tensor>& inputs) {
  using namespace eager;
  if (!grad_enabled()) return part(inputs);
  std::vector<Tensor> made;
  std::vector<UpdateLog::Entry> updates;
  {
    UpdateLog log;
    made = part(inputs);
    updates = std::move(log.entries);
  }
  if (std::ranges::none_of(made, [](const Tensor& t) { return t && t.requires_grad(); })) return made;
  const auto node = std::make_shared<TapeNode>();
  node->op = &kRecompute, node->sequence = next_sequence();
  for (const Tensor& t : inputs) {
    node->edges.push_back(edge_to(t));
    node->in_types.push_back(t ? t.type() : TensorType{});
    node->in.push_back(t ? value_or_raise(save(t)) : Saved{});
  }
  // The results, detached from their history.
  std::vector<Tensor> results;
  for (size_t k = 0; k < made.size(); ++k) {
    node->out_types.push_back(made[k].type());
    results.push_back(made[k].requires_grad() ? alias(made[k]) : made[k]);
    if (!made[k].requires_grad()) continue;
    auto& impl = *results.back().impl();
    impl.requires_grad = true;
    impl.more().node = node, impl.more().output = static_cast<uint32_t>(k);
  }
  node->rerun = std::make_unique<PartAgain>(part, std::move(updates), node->out_types);
  return results;
}

}  // namespace weft
