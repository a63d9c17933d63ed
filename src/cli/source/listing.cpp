#include "cli/source/listing.h"

#include <algorithm>
#include <bit>
#include <map>

#include "ir/builder.h"
#include "program/flow.h"

namespace weft::cli::source {
namespace {

using program::CompiledProgram;
using program::KernelCall;
using program::ValueId;

/// A list of calls: the program's own, or the body of one of them.
struct Body {
  const std::vector<KernelCall>& calls;
  std::vector<Id> ids;     // of its values
  std::vector<bool> read;  // is the value an operand or result?
  std::string where;       // of the call around it
};

class Lister {
 public:
  explicit Lister(const CompiledProgram& p) : p_(p) {}

  Result<Listing> run() {
    Body body{p_.calls, std::vector<Id>(p_.values.size(), kNone), reads(p_.calls, p_.values.size()), ""};
    const auto define = [&](ValueId id, Value::Kind kind, const std::string& name) {
      return body.ids[static_cast<size_t>(id)] = add({.kind = kind, .name = name});
    };
    for (const auto& i : p_.inputs) out_.inputs.push_back(define(i.value, Value::Kind::input, i.name));
    for (const auto& w : p_.weights) define(w.value, Value::Kind::stored, w.name);
    for (const auto& s : p_.states) define(s.before, Value::Kind::stored, s.name);
    for (const auto& o : p_.outputs) body.read[static_cast<size_t>(o.value)] = true;
    WEFT_CHECK(list(body));
    bring_forward();
    for (const auto& o : p_.outputs) out_.outputs.push_back(body.ids[static_cast<size_t>(o.value)]);
    return std::move(out_);
  }

 private:
  Id add(Value v) {
    out_.values.push_back(std::move(v));
    return static_cast<Id>(out_.values.size() - 1);
  }
  /// Equal numbers are one value, so that repeated layers have the same operands.
  Id number(const std::vector<AttrValue>& full) {
    const double value = std::get<double>(full[0]) * static_cast<double>(std::get<Shape>(full[3])[0].value());
    const DType dtype = *dtype_from_name(std::get<std::string>(full[2]));
    const auto [at, is_new] = numbers_.try_emplace({std::bit_cast<uint64_t>(value), dtype}, kNone);
    if (is_new) at->second = add({.kind = Value::Kind::number, .number = value, .dtype = dtype});
    return at->second;
  }
  static std::vector<bool> reads(const std::vector<KernelCall>& calls, size_t n) {
    std::vector<bool> read(n);
    for (const auto& c : calls)
      for (const ValueId id : c.inputs)
        if (id >= 0) read[static_cast<size_t>(id)] = true;
    return read;
  }

  Status list(Body& body) {
    for (size_t i = 0; i < body.calls.size(); ++i) {
      const KernelCall& c = body.calls[i];
      if (const auto* op = ir::find_op(c.op); op && says_all(*op, c, body))
        WEFT_CHECK(call(*op, c, body));
      else if (c.region >= 0)
        WEFT_CHECK(open(c, body));
      else
        return fail(Code::unsupported, "{}: its function does not return all that is read",
                    program::call_text(i, c));
    }
    return {};
  }

  /// Does the public function return what is read of the call?
  static bool says_all(const ir::OpDef& op, const KernelCall& c, const Body& body) {
    for (size_t k = op.n_public; k < c.outputs.size(); ++k)
      if (op.update_input(static_cast<int>(k)) < 0 && body.read[static_cast<size_t>(c.outputs[k])])
        return false;
    return true;
  }

  std::vector<Id> operands(const KernelCall& c, const Body& body) const {
    std::vector<Id> in;
    for (const ValueId id : c.inputs) in.push_back(id < 0 ? kNone : body.ids[static_cast<size_t>(id)]);
    return in;
  }

  Status call(const ir::OpDef& op, const KernelCall& c, Body& body) {
    WEFT_TRY(auto attrs, ir::order_attrs(op, c.attrs));
    if (is_number(op, attrs)) {
      body.ids[static_cast<size_t>(c.outputs[0])] = number(attrs);
      return {};
    }
    Line line{&op, std::move(attrs), operands(c, body), {}, c.where.empty() ? body.where : c.where};
    if (std::string_view(op.name) == "mul" && line.inputs[0] == line.inputs[1])  // one spelling for both
      line.op = ir::find_op("square"), line.inputs.pop_back();
    for (size_t k = 0; k < c.outputs.size(); ++k) {
      Id& id = body.ids[static_cast<size_t>(c.outputs[k])];
      if (const int in = op.update_input(static_cast<int>(k)); in >= 0)
        id = line.inputs[static_cast<size_t>(in)];
      else
        id = add({.line = out_.lines.size(), .result = k});
      if (k < op.n_public) line.outputs.push_back(id);
    }
    out_.lines.push_back(std::move(line));
    return {};
  }
  static bool is_number(const ir::OpDef& op, const std::vector<AttrValue>& attrs) {
    return std::string_view(op.name) == "full" && std::get<Shape>(attrs[1]).empty() &&
           std::get<Shape>(attrs[3])[0].is_const();
  }

  Status open(const KernelCall& c, Body& body) {
    const auto& region = p_.regions[static_cast<size_t>(c.region)];
    Body inner{region.calls, std::vector<Id>(region.values.size(), kNone),
               reads(region.calls, region.values.size()), c.where.empty() ? body.where : c.where};
    for (const ValueId id : region.outputs) inner.read[static_cast<size_t>(id)] = true;
    const auto in = operands(c, body);
    std::ranges::copy(in, inner.ids.begin());
    WEFT_CHECK(list(inner));
    for (size_t k = 0; k < c.outputs.size(); ++k)
      body.ids[static_cast<size_t>(c.outputs[k])] = inner.ids[static_cast<size_t>(region.outputs[k])];
    // A body may give the new value of what its call updates.
    for (const auto& u : c.updates) {
      Id& now = body.ids[static_cast<size_t>(c.outputs[u.output])];
      if (now == in[u.input]) continue;
      out_.lines.push_back({ir::find_op("assign"), {}, {in[u.input], now}, {}, inner.where});
      now = in[u.input];
    }
    return {};
  }

  /// A result that nothing stored and no update takes part in may be made earlier.
  bool moves(const Line& line) const {
    const auto stored = [&](Id id) { return id != kNone && out_.at(id).kind == Value::Kind::stored; };
    return !line.updates() && line.outputs.size() == 1 && std::ranges::none_of(line.inputs, stored);
  }
  /// For each value, the last line that reads it, or reads what is made of it by lines that may move.
  std::vector<size_t> last_reads() const {
    std::vector<size_t> last(out_.values.size());
    for (size_t n = out_.lines.size(); n-- > 0;) {
      const Line& line = out_.lines[n];
      const size_t reach = moves(line) ? std::max(n, last[static_cast<size_t>(line.outputs[0])]) : n;
      for (const Id id : line.inputs)
        if (id != kNone) last[static_cast<size_t>(id)] = std::max(last[static_cast<size_t>(id)], reach);
    }
    return last;
  }

  /// What all layers read, as a table, may be made in the first one, from what was there before. It goes to
  /// where it can be made first: then layers are alike.
  void bring_forward() {
    constexpr size_t kLong = 10;
    const auto last_read = last_reads();
    std::vector<size_t> place(out_.values.size());  // behind the line that makes a value
    std::vector<Line> lines;
    for (Line& line : out_.lines) {
      size_t to = lines.size(), ready = 0;
      for (const Id id : line.inputs)
        if (id != kNone) ready = std::max(ready, place[static_cast<size_t>(id)]);
      if (moves(line) && ready > 0 && last_read[static_cast<size_t>(line.outputs[0])] > to + kLong)
        to = ready;
      for (size_t& p : place) p += p > to;
      for (const Id id : line.outputs) place[static_cast<size_t>(id)] = to + 1;
      lines.insert(lines.begin() + static_cast<ptrdiff_t>(to), std::move(line));
    }
    out_.lines = std::move(lines);
    for (size_t n = 0; n < out_.lines.size(); ++n)
      for (const Id id : out_.lines[n].outputs) out_.values[static_cast<size_t>(id)].line = n;
  }

  const CompiledProgram& p_;
  std::map<std::pair<uint64_t, DType>, Id> numbers_;
  Listing out_;
};

}  // namespace

Result<Listing> list(const program::CompiledProgram& program) { return Lister(program).run(); }

}  // namespace weft::cli::source
