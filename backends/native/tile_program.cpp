#include <algorithm>
#include <memory>
#include <optional>

#include "backends/native/tiles.h"
#include "weft/shared/numbers.hpp"
#include "weft/shared/walk.hpp"

// Compiles a call to a program of the tile interpreter.
namespace weft::native {
namespace {

using backend::KernelRecord;
using backend::Launch;
using backend::OpCall;
using backend::Outcome;
using backend::Support;
using backend::TypeView;

std::optional<Stored> stored_of(TypeView t) {
  if (!t.has() || t.layout() != 0) return std::nullopt;
  switch (t.dtype()) {
    case DType::f32: return Stored::f32;
    case DType::f16: return Stored::f16;
    case DType::bf16: return Stored::bf16;
    case DType::boolean: return Stored::truth;
    default: return std::nullopt;
  }
}

class Compiler {
 public:
  Compiler(const OpCall& call, TileProgram* to) : call_(call), p_(*to) {}

  Support compile() {
    if (call_.n_outputs() < 1) return Support::no("has no result");
    for (int64_t i = 0; i < call_.n_inputs(); ++i) {
      if (auto s = operand(call_.input(i), "input", i); !s) return s;
      p_.inputs.push_back(*stored_of(call_.input(i)));
    }
    for (int64_t i = 0; i < call_.n_outputs(); ++i) {
      if (auto s = operand(call_.output(i), "output", i); !s) return s;
      if (!std::ranges::equal(call_.output(i).max(), call_.output(0).max()))
        return Support::no("results have shapes {} and {}", call_.output(0).max(), call_.output(i).max());
      p_.stored.push_back(*stored_of(call_.output(i)));
    }
    if (auto s = call_.region() ? region(*call_.region()) : single(); !s) return s;
    for (const Value v : results_)
      if (call_.updates() != 0 && v.kind == Value::Kind::input)
        return Support::no("a result is an operand, which another result may be written over");
    const size_t values = p_.inputs.size() + p_.constants.size() + code_.size();
    if (values >= TileProgram::kNoPlace) return Support::no("{} values are too many", values);
    number();
    return Support::yes();
  }

 private:
  // A value before constants and results are numbered.
  struct Value {
    enum class Kind : uint8_t { none, input, constant, result } kind = Kind::none;
    int index = 0;
  };

  Support operand(TypeView t, const char* what, int64_t i) const {
    if (!t.has()) return Support::no("{} {} is absent", what, i);
    if (!stored_of(t))
      return Support::no("{} {} is {}; tiles hold f32, f16, bf16 and bool", what, i, t.dtype());
    if (t.rank() > shared::kMaxRank)
      return Support::no("rank must be <= {}, got {}", shared::kMaxRank, t.rank());
    return shared::broadcasts(t, call_.output(0));
  }

  Support single() {
    std::vector<Value> in;
    for (int i = 0; i < call_.n_inputs(); ++i) in.push_back({Value::Kind::input, i});
    Value y;
    if (auto s = step(call_, in, &y); !s) return s;
    results_.push_back(y);
    return Support::yes();
  }

  Support region(const weft_region& r) {
    std::vector<Value> values(r.n_values);
    for (uint32_t i = 0; i < r.n_inputs; ++i) values[i] = {Value::Kind::input, static_cast<int>(i)};
    for (uint32_t i = 0; i < r.n_steps; ++i) {
      const weft_step& s = *r.steps[i];
      const OpCall call(s.call);
      if (call.n_outputs() != 1) return Support::no("step {} has {} results", call.op(), call.n_outputs());
      std::vector<Value> in;
      for (uint32_t k = 0; k < s.call->n_inputs; ++k) {
        if (s.inputs[k] == UINT32_MAX) return Support::no("step {} has an absent operand", call.op());
        in.push_back(values[s.inputs[k]]);
      }
      if (auto no = step(call, in, &values[s.outputs[0]]); !no) return no;
    }
    for (int64_t i = 0; i < call_.n_outputs(); ++i) results_.push_back(values[r.outputs[i]]);
    return Support::yes();
  }

  Support step(const OpCall& call, const std::vector<Value>& in, Value* y) {
    const auto type = stored_of(call.output(0));
    if (!type)
      return Support::no("step {} makes {}; tiles hold f32, f16, bf16 and bool", call.op(),
                         call.output(0).dtype());
    for (int64_t i = 0; i < call.n_inputs(); ++i)
      if (!stored_of(call.input(i)))
        return Support::no("step {} takes {}; tiles hold f32, f16, bf16 and bool", call.op(),
                           call.input(i).dtype());
    if (auto s = shared::broadcasts(call.output(0), call_.output(0)); !s) return s;
    if (call.op() == "full") return constant(call, *type, y);
    if (call.op() == "broadcast") return *y = in[0], Support::yes();
    if (call.op() == "cast") return cast(*type, *stored_of(call.input(0)), in[0], y);
    const NamedStep* named = find_step(call.op());
    if (!named || call.op() == "truth") return Support::no("{} is no step of a tile", call.op());
    if (static_cast<size_t>(named->operands) != in.size())
      return Support::no("{} has {} operands", call.op(), in.size());
    const bool numbers = call.op() != "where" && call.op() != "equal" && call.op() != "less";
    for (size_t i = 0; numbers && i < in.size(); ++i)
      if (call.input(static_cast<int64_t>(i)).dtype() == DType::boolean)
        return Support::no("{} is not for bool", call.op());
    *y = emit(named->run, in);
    const bool half = *type == Stored::f16 || *type == Stored::bf16;
    if (half && call.op() != "where") *y = round(*type, *y);
    return Support::yes();
  }

  Support constant(const OpCall& call, Stored type, Value* y) {
    double v = call.attr("value").real() * static_cast<double>(call.attr("times").integer(1));
    auto value = static_cast<float>(v);
    if (type == Stored::truth) value = v != 0;
    if (type == Stored::f16 || type == Stored::bf16) {
      // Rounded once, from the double.
      const uint16_t bits =
          type == Stored::f16 ? shared::store<shared::Half>(v).bits : shared::store<shared::BFloat>(v).bits;
      widen(type, &bits, &value, 1);
    }
    *y = {Value::Kind::constant, static_cast<int>(p_.constants.size())};
    p_.constants.push_back(value);
    return Support::yes();
  }
  Support cast(Stored to, Stored from, Value x, Value* y) {
    *y = x;
    if (to == Stored::truth && from != Stored::truth) *y = emit(find_step("truth")->run, {x});
    if ((to == Stored::f16 || to == Stored::bf16) && from != to && from != Stored::truth) *y = round(to, x);
    return Support::yes();
  }

  Value emit(Step run, const std::vector<Value>& in) {
    code_.push_back({run, Stored::f32, in});
    return {Value::Kind::result, static_cast<int>(code_.size()) - 1};
  }
  Value round(Stored to, Value x) {
    code_.push_back({nullptr, to, {x}});
    return {Value::Kind::result, static_cast<int>(code_.size()) - 1};
  }

  static Value result(size_t i) { return {Value::Kind::result, static_cast<int>(i)}; }
  static bool is_result(Value v, size_t i) {
    return v.kind == Value::Kind::result && static_cast<size_t>(v.index) == i;
  }
  // Is code `i` a cheap step on the result of the cheap step before it?
  bool continues(size_t i) const {
    const auto cheap = [](const Code& c) { return c.run && find_link(c.run); };
    return cheap(code_[i - 1]) && cheap(code_[i]) &&
           (is_result(code_[i].in[0], i - 1) || is_result(code_[i].in[1], i - 1));
  }

  // Numbers the values; results reuse the tiles of dead results.
  void number() {
    const auto base = static_cast<int>(p_.inputs.size()),
               results = base + static_cast<int>(p_.constants.size());
    const auto id = [&](Value v) {
      return static_cast<uint16_t>(v.kind == Value::Kind::input      ? v.index
                                   : v.kind == Value::Kind::constant ? base + v.index
                                                                     : results + v.index);
    };
    std::vector<size_t> last(static_cast<size_t>(results) + code_.size(), 0), uses(last.size(), 0);
    for (size_t i = 0; i < code_.size(); ++i)
      for (const Value v : code_[i].in) last[id(v)] = i, ++uses[id(v)];
    for (const Value v : results_) last[id(v)] = code_.size(), ++uses[id(v)], p_.outputs.push_back(id(v));
    p_.place.assign(last.size(), TileProgram::kNoPlace);
    std::vector<uint16_t> free;
    for (size_t i = 0; i < code_.size(); ++i) {
      const size_t begin = i;
      while (i + 1 < code_.size() && i + 1 < begin + Instruction::kMostLinks && uses[id(result(i))] == 1 &&
             continues(i + 1))
        ++i;
      Instruction n{code_[i].run, code_[i].rounded, static_cast<int>(code_[i].in.size()),
                    {},           id(result(i)),    {}};
      for (size_t k = 0; k < code_[i].in.size(); ++k) n.from[k] = id(code_[i].in[k]);
      if (i > begin) {
        n.run = nullptr, n.operands = 1, n.from[0] = id(code_[begin].in[0]);
        for (size_t k = begin; k <= i; ++k) {
          const auto& in = code_[k].in;
          const bool swapped = k > begin && is_result(in[1], k - 1);
          n.links.push_back({*find_link(code_[k].run), swapped, id(in[swapped ? 0 : 1])});
          // Operands of a link are needed until the end of the chain.
          for (const Value v : in) last[id(v)] = std::max(last[id(v)], i);
        }
      }
      if (free.empty()) free.push_back(static_cast<uint16_t>(p_.places++));
      p_.place[n.to] = free.back(), free.pop_back();
      for (size_t v = static_cast<size_t>(results); v < n.to; ++v)
        if (last[v] == i && p_.place[v] != TileProgram::kNoPlace) free.push_back(p_.place[v]);
      p_.instructions.push_back(n);
    }
    ++p_.places;  // one for an output that is a constant or a single element
  }

  struct Code {
    Step run;
    Stored rounded;
    std::vector<Value> in;
  };
  const OpCall& call_;
  TileProgram& p_;
  std::vector<Code> code_;
  std::vector<Value> results_;
};

Support accepts(const OpCall& call) {
  TileProgram p;
  return compile(call, &p);
}
Outcome prepare(const OpCall& call, weft_plan& plan) {
  auto p = std::make_unique<TileProgram>();
  if (auto s = compile(call, p.get()); !s) return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  plan.data = p.release();
  return Outcome::ok();
}
void release(weft_plan* plan) {
  delete static_cast<TileProgram*>(plan->data);
  plan->data = nullptr;
}
Outcome launch(const Launch& l) {
  if (l.output(0).size() > 0) run(*static_cast<const TileProgram*>(l.raw()->plan->data), l);
  return Outcome::ok();
}

}  // namespace

Support compile(const OpCall& call, TileProgram* to) { return Compiler(call, to).compile(); }

std::vector<KernelRecord> tile_records() {
  std::vector<KernelRecord> all;
  const KernelRecord record{.variant = "tiles",
                            .accepts = accepts,
                            .prepare = prepare,
                            .release = release,
                            .launch = launch,
                            .in_place = true};
  for (int i = 0; i < step_count(); ++i) {
    const NamedStep& step = step_at(i);
    if (std::string_view(step.op) == "truth") continue;
    all.push_back(record);
    all.back().op = step.op;
    if (step.exact) all.back().determinism = WEFT_DETERMINISM_DEVICES;
  }
  all.push_back(record);
  all.back().op = "cast", all.back().reads = {"dtype"}, all.back().determinism = WEFT_DETERMINISM_DEVICES;
  all.push_back(record);
  all.back().op = "region", all.back().reads_all = true;
  return all;
}

}  // namespace weft::native
