#include "link/open.h"

namespace weft::link {
namespace {

// Definition and last read of each value of a body, and whether its step updates an operand. Steps count
// from 1.
struct Uses {
  explicit Uses(const seam::RegionDesc& body)
      : made(body.values.size(), 0), read(body.values.size(), 0), updates(body.values.size(), false) {
    for (uint32_t i = 0; i < body.steps.size(); ++i) {
      const auto& step = body.steps[i];
      for (const uint32_t v : step.inputs)
        if (v != UINT32_MAX) read[v] = i + 1;
      for (const uint32_t v : step.outputs) made[v] = i + 1;
      for (const auto& [output, input] : step.call.updates) updates[step.outputs[output]] = true;
    }
  }
  std::vector<uint32_t> made, read;
  std::vector<bool> updates;
};

class Opening {
 public:
  Opening(FlatProgram& program, const seam::CallDesc& call, const Ids& in, const Ids& out)
      : program_(program), call_(call), body_(*call.region), in_(in), out_(out), uses_(body_) {}

  std::vector<OpenStep> run() {
    number_values();
    for (const auto& step : body_.steps) add_step(step);
    add_copies();
    return std::move(steps_);
  }

 private:
  FlatValue& value(int32_t id) { return program_.values[static_cast<size_t>(id)]; }
  int32_t add_value(const seam::ConcreteType& type) {
    program_.values.push_back({.type = type});
    return static_cast<int32_t>(program_.values.size()) - 1;
  }
  // The operand that result k overwrites; -1 if it has memory of its own.
  int32_t updated_by(size_t k) const {
    for (const auto& [output, input] : call_.updates)
      if (output == k) return in_[input];
    return -1;
  }
  // A result that must not overwrite its operand yet, because the old value is read later.
  bool late(size_t k) const {
    for (const auto& [output, input] : call_.updates) {
      if (output != k) continue;
      const uint32_t v = body_.outputs[k];
      return !uses_.updates[v] && (v < body_.n_inputs || uses_.read[input] >= uses_.made[v]);
    }
    return false;
  }

  // A result made in the body gets the number of the call's output.
  void number_values() {
    ids_.assign(body_.values.size(), -1);
    for (uint32_t i = 0; i < body_.n_inputs; ++i) ids_[i] = in_[i];
    for (size_t k = 0; k < out_.size(); ++k) {
      const uint32_t v = body_.outputs[k];
      if (v < body_.n_inputs || late(k)) continue;
      ids_[v] = out_[k];
      if (!uses_.updates[v]) value(out_[k]).over = updated_by(k);
    }
    for (size_t v = body_.n_inputs; v < ids_.size(); ++v)
      if (ids_[v] < 0) ids_[v] = add_value(body_.values[v]);
    for (const auto& step : body_.steps)
      for (const auto& [output, input] : step.call.updates)
        value(ids_[step.inputs[input]]).overwritten = true;
  }

  void add_step(const seam::StepDesc& step) {
    OpenStep out{.call = step.call};
    for (const uint32_t v : step.inputs) out.inputs.push_back(v == UINT32_MAX ? -1 : ids_[v]);
    for (const uint32_t v : step.outputs) out.outputs.push_back(ids_[v]);
    steps_.push_back(std::move(out));
  }
  void add_copy(int32_t from, int32_t to) { steps_.push_back({.inputs = {from}, .outputs = {to}}); }

  // Results that are an operand handed through, or a second name of one value, and late updates: these last,
  // since they write over what the others may read.
  void add_copies() {
    std::vector<std::pair<int32_t, size_t>> updates;
    for (size_t k = 0; k < out_.size(); ++k) {
      const uint32_t v = body_.outputs[k];
      int32_t from = ids_[v];
      if (from == out_[k]) continue;
      if (!late(k)) {
        add_copy(from, out_[k]);
        continue;
      }
      if (v < body_.n_inputs) {  // another update may write over it first
        const int32_t kept = add_value(body_.values[v]);
        add_copy(from, kept);
        from = kept;
      }
      updates.emplace_back(from, k);
    }
    for (const auto& [from, k] : updates) {
      value(out_[k]).over = updated_by(k);
      add_copy(from, out_[k]);
    }
  }

  FlatProgram& program_;
  const seam::CallDesc& call_;
  const seam::RegionDesc& body_;
  const Ids &in_, &out_;
  const Uses uses_;
  Ids ids_;
  std::vector<OpenStep> steps_;
};

}  // namespace

std::vector<OpenStep> open(FlatProgram& program, const seam::CallDesc& call, const Ids& inputs,
                           const Ids& outputs) {
  return Opening(program, call, inputs, outputs).run();
}

}  // namespace weft::link
