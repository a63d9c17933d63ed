#include <algorithm>
#include <map>

#include "base/identical.h"
#include "base/shown.h"
#include "compiler/compile.h"
#include "program/flow.h"

namespace weft::compiler {
namespace {

using program::KernelCall;
using program::TensorSpec;

using TypeList = std::vector<const TensorType*>;

// Checks one call against its op's definition. Kernels refuse what they can't do, but trust calls to be
// valid. A call may be older than the last optional operands of its op: it ends before them.
class CallChecker {
 public:
  CallChecker(const ir::OpDef& op, const KernelCall& call, std::span<const TensorSpec> values)
      : op_(op), call_(call), values_(values) {}

  Status run() {
    if (call_.version != op_.version)
      return fail(Code::unsupported, "version {} of the op; this Weft has {}", call_.version, op_.version);
    WEFT_CHECK(operands());
    WEFT_TRY(std::vector<AttrValue> attrs, ordered_attrs());
    WEFT_TRY(const auto types, inferred(attrs));
    WEFT_CHECK(settled(std::move(attrs)));
    WEFT_CHECK(results(types));
    return updates();
  }

 private:
  const TensorType* type(program::ValueId id) const {
    return id < 0 ? nullptr : &values_[static_cast<size_t>(id)].type;
  }

  Status operands() {
    if (call_.inputs.size() > op_.n_inputs || call_.inputs.size() + op_.n_optional < op_.n_inputs)
      return invalid("{} operands, wanted {}", call_.inputs.size(), op_.n_inputs);
    for (size_t i = 0; i < op_.n_inputs; ++i) {
      types_.push_back(i < call_.inputs.size() ? type(call_.inputs[i]) : nullptr);
      if (!types_.back() && i + op_.n_optional < op_.n_inputs)
        return invalid("operand '{}' is left out", op_.inputs[i]);
    }
    return {};
  }

  // In the order of the op's fields, each of its kind, with correct marks of defaults.
  Result<std::vector<AttrValue>> ordered_attrs() const {
    if (call_.attrs.size() != op_.attrs.size())
      return invalid("{} attributes, wanted {}", call_.attrs.size(), op_.attrs.size());
    WEFT_TRY(auto attrs, ir::order_attrs(op_, call_.attrs));
    const auto defaults = op_.defaults();
    for (size_t i = 0; i < attrs.size(); ++i) {
      const std::string name = op_.attrs[i].name;
      const auto own =
          std::find_if(call_.attrs.begin(), call_.attrs.end(), [&](const Attr& a) { return a.name == name; });
      if (own == call_.attrs.end() || !identical(own->value, attrs[i]))
        return invalid("attribute '{}' is missing or of another kind", name);
      if (std::binary_search(call_.defaults.begin(), call_.defaults.end(), name) !=
          identical(attrs[i], defaults[i]))
        return invalid("attribute '{}' is wrongly listed as its default, or wrongly not", name);
    }
    return attrs;
  }

  // Shape rules raise for sizes that a Dim can't hold.
  Result<std::vector<TensorType>> inferred(ir::AttrView attrs) const {
    try {
      return op_.infer(ir::Types(types_), attrs);
    } catch (const Error& e) {
      return Status(e.status());
    }
  }

  // In the form for kernels: axes counted from the front, sizes and bounds explicit. The shape rule has
  // checked their range.
  Status settled(std::vector<AttrValue> attrs) const {
    const auto before = attrs;
    ir::settle_attrs(op_, ir::Types(types_), attrs);
    return identical(before, attrs)
               ? Status()
               : invalid("an attribute is in a short form: axes and bounds must be counted from the front");
  }

  Status results(const std::vector<TensorType>& types) const {
    if (call_.outputs.size() != types.size())
      return invalid("{} results, wanted {}", call_.outputs.size(), types.size());
    for (size_t i = 0; i < types.size(); ++i)
      if (const TensorType* have = type(call_.outputs[i]); have && !(*have == types[i]))
        return invalid("result {} is {}, the op's rule says {}", i, shown(text(*have)),
                       shown(text(types[i])));
    return {};
  }

  Status updates() const {
    std::vector<program::Update> wanted;
    for (const auto& u : op_.updates)
      if (u.output >= 0) wanted.push_back({static_cast<uint32_t>(u.output), static_cast<uint32_t>(u.input)});
    return call_.updates == wanted ? Status() : invalid("it updates other operands in place than its op");
  }

  const ir::OpDef& op_;
  const KernelCall& call_;
  std::span<const TensorSpec> values_;
  TypeList types_;
};

// A call with a body may name an unknown op: a fusion, or an op of a newer Weft. Its body defines it, with
// types that verify() has compared with the call's. The body of a known op is not compared with the op's
// meaning: a wrong one gives wrong numbers, but accesses only its operands.
Status check_calls(std::span<const KernelCall> calls, std::span<const TensorSpec> values) {
  for (size_t i = 0; i < calls.size(); ++i) {
    const KernelCall& call = calls[i];
    const std::string where = program::call_text(i, call);
    const ir::OpDef* op = ir::find_op(call.op);
    if (op && op->primitive() != (call.region < 0))
      return invalid("{}: {}", where, op->primitive() ? "a primitive has no body" : "its body is missing");
    if (op) WEFT_CHECK(CallChecker(*op, call, values).run().at(where));
  }
  return {};
}

// Primitive calls of ops that are not there, all at once, each op with its first call.
Status check_names(const program::CompiledProgram& program) {
  std::map<std::string, std::string> unknown;
  const auto look = [&](std::span<const KernelCall> calls, const std::string& within) {
    for (size_t i = 0; i < calls.size(); ++i)
      if (calls[i].region < 0 && !ir::find_op(calls[i].op))
        unknown.try_emplace(calls[i].op, within + program::call_text(i, calls[i]));
  };
  for (size_t i = 0; i < program.regions.size(); ++i)
    look(program.regions[i].calls, fmt::format("region @r{}, ", i));
  look(program.calls, "");
  std::string all;
  for (const auto& [op, call] : unknown)
    all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", shown(op), call);
  if (unknown.empty()) return {};
  return fail(Code::unsupported, "this Weft has no op of {}: {}",
              unknown.size() == 1 ? "this name" : "these names", all);
}

// A call that is older than an attribute of its op gets the default, so kernels see all attributes.
void complete(std::vector<KernelCall>& calls) {
  for (KernelCall& call : calls) {
    const ir::OpDef* op = ir::find_op(call.op);
    const auto defaults = op ? op->defaults() : std::vector<AttrValue>();
    for (size_t i = 0; i < defaults.size(); ++i) {
      const std::string name = op->attrs[i].name;
      const auto at = std::ranges::lower_bound(call.attrs, name, {}, &Attr::name);
      if (at != call.attrs.end() && at->name == name) continue;
      call.attrs.insert(at, {name, defaults[i]});
      call.defaults.insert(std::ranges::lower_bound(call.defaults, name), name);
    }
  }
}

}  // namespace

Status check_ops(const program::CompiledProgram& program) {
  WEFT_CHECK(check_names(program));
  for (size_t i = 0; i < program.regions.size(); ++i)
    WEFT_CHECK(check_calls(program.regions[i].calls, program.regions[i].values)
                   .at(fmt::format("region @r{} {}", i, shown(program.regions[i].pattern))));
  return check_calls(program.calls, program.values);
}

Result<program::CompiledProgram> read_file(const std::string& path) {
  WEFT_TRY(auto program, program::read_file(path));
  for (auto& region : program.regions) complete(region.calls);
  complete(program.calls);
  WEFT_CHECK(check_ops(program).at(path));
  return program;
}

}  // namespace weft::compiler
