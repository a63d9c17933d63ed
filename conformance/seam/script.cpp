#include "conformance/seam/script.h"

namespace weft::conformance {

Script::Script(Rig& rig, size_t buffers, size_t bound, std::vector<Step> steps)
    : rig_(rig), bound_(bound), steps_(std::move(steps)), fixed_(buffers) {
  for (size_t i = bound; i < buffers; ++i) fixed_[i] = value_or_raise(rig.upload(array({kElements}, {0})));
}

seam::PreparedKernel& Script::plan_of(const char* op) {
  auto& plan = plans_[op];
  const auto x = array({kElements}, {0});
  if (!plan) plan = value_or_raise(rig_.plan(value_or_raise(describe({op, {x, x}}))));
  return *plan;
}

// One of the two writes memory that the other touches.
bool Script::waits(size_t later, size_t earlier) const {
  const Step &l = steps_[later], &e = steps_[earlier];
  const auto touches = [](const Step& s, size_t buffer) {
    return s.a == buffer || s.to == buffer || (*s.op && s.b == buffer);
  };
  return touches(e, l.to) || touches(l, e.to);
}

// Everything that a description points to; freed before the sequence runs.
struct Script::Described {
  struct One {
    std::vector<uint32_t> after;
    weft_tensor a, b, to;
    const weft_tensor *inputs[2], *outputs[1];
    weft_launch launch;
    weft_copy copy;
    weft_sequence_step c;
  };
  std::deque<One> all;
  std::vector<const weft_sequence_step*> pointers;
};

Result<std::unique_ptr<seam::Sequence>> Script::record(uint32_t& refused) {
  Described d;
  const auto pattern = value_or_raise(rig_.upload(array({kElements}, {0})));
  const auto tensor = [&](size_t buffer) {
    weft_tensor t = buffer < bound_ ? pattern->c : fixed_[buffer]->c;
    if (buffer < bound_) t.dl.data = nullptr, t.binding = static_cast<uint32_t>(buffer) + 1;
    return t;
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    auto& one = d.all.emplace_back();
    for (size_t e = 0; e < i; ++e)
      if (waits(i, e)) one.after.push_back(static_cast<uint32_t>(e));
    one.a = tensor(s.a), one.to = tensor(s.to);
    one.c = {.size = sizeof one.c,
             .lane = static_cast<uint32_t>(s.to),
             .launch = nullptr,
             .copy = nullptr,
             .after = one.after.data(),
             .n_after = static_cast<uint32_t>(one.after.size()),
             .reserved = 0};
    d.pointers.push_back(&one.c);
    if (!*s.op) {
      one.copy = {.size = sizeof one.copy,
                  .reserved = 0,
                  .source = one.a.dl.data,
                  .source_offset = 0,
                  .target = one.to.dl.data,
                  .target_offset = 0,
                  .host_source = nullptr,
                  .host_target = nullptr,
                  .bytes = kElements * sizeof(float),
                  .source_binding = one.a.binding,
                  .target_binding = one.to.binding};
      one.c.copy = &one.copy;
      continue;
    }
    one.b = tensor(s.b);
    one.inputs[0] = &one.a, one.inputs[1] = &one.b, one.outputs[0] = &one.to;
    seam::PreparedKernel& plan = plan_of(s.op);
    auto& workspace = workspaces_[fmt::format("{}", i)];
    workspace = value_or_raise(rig_.workspace(plan.plan));
    one.launch = {.size = sizeof one.launch,
                  .reserved = 0,
                  .plan = &plan.plan,
                  .device = rig_.device.c(),
                  .queue = nullptr,
                  .inputs = one.inputs,
                  .outputs = one.outputs,
                  .workspace = workspace ? &workspace->c : nullptr};
    one.c.launch = &one.launch;
    if (!(plan.kernel.flags & WEFT_KERNEL_RECORDABLE))
      return fail(Code::unsupported, "{} is not recordable", plan.kernel.id);
  }
  raise_if(rig_.queue->synchronize());
  return seam::Sequence::record(rig_.device, d.pointers, static_cast<uint32_t>(bound_), refused);
}

std::vector<std::unique_ptr<Rig::Operand>> Script::memory(const Values& values) {
  std::vector<std::unique_ptr<Rig::Operand>> all;
  for (size_t i = 0; i < bound_; ++i)
    all.push_back(value_or_raise(rig_.upload(array({kElements}, {values[i]}))));
  return all;
}

std::vector<void*> Script::handles(const std::vector<std::unique_ptr<Rig::Operand>>& memory) {
  std::vector<void*> all;
  for (const auto& o : memory) all.push_back(o->buffer->handle);
  return all;
}

void Script::fill_fixed(const Values& values) {
  for (size_t i = bound_; i < fixed_.size(); ++i) {
    const auto x = array({kElements}, {values[i]});
    raise_if(rig_.queue->copy_in(*fixed_[i]->buffer.get(), 0, x.bytes.data(), x.bytes.size()));
  }
}

Script::Values Script::after(Values values) const {
  for (const Step& s : steps_) {
    const double a = values[s.a], b = values[s.b];
    const std::string_view op = s.op;
    values[s.to] = op == "add" ? a + b : op == "sub" ? a - b : op == "maximum" ? std::max(a, b) : a;
  }
  return values;
}

Finding Script::differs_from(const Rig::Operand& o, double wanted, size_t number) {
  const auto got = numbers(value_or_raise(rig_.download(o)));
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != wanted)
      return fmt::format("buffer {}, element {} is {}, wanted {}", number, i, got[i], wanted);
  return {};
}

Finding Script::wrong(const std::vector<std::unique_ptr<Rig::Operand>>& memory, const Values& wanted) {
  for (size_t i = 0; i < memory.size(); ++i)
    if (auto words = differs_from(*memory[i], wanted[i], i); !words.empty()) return "binding: " + words;
  return {};
}

Finding Script::wrong_fixed(const Values& wanted) {
  for (size_t i = bound_; i < fixed_.size(); ++i)
    if (auto words = differs_from(*fixed_[i], wanted[i], i); !words.empty()) return "fixed: " + words;
  return {};
}

std::vector<Script::Step> any_steps(Random& random, size_t buffers, size_t n) {
  const auto any = [&] { return static_cast<size_t>(random.bits() % buffers); };
  constexpr const char* kOps[] = {"sub", "sub", "add", "maximum", ""};
  std::vector<Script::Step> steps;
  for (size_t i = 0; i < n; ++i) {
    Script::Step s{kOps[random.bits() % std::size(kOps)], any(), any(), any()};
    while (s.to == s.a || s.to == s.b) s.to = any();
    steps.push_back(s);
  }
  return steps;
}

}  // namespace weft::conformance
