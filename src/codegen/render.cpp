#include "codegen/render.h"

#include <algorithm>

namespace weft::codegen {
namespace {

/// `text` with each $letter replaced by `value` of it.
template <class F>
std::string expand(std::string_view text, F value) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && i + 1 < text.size())
      out += value(text[++i]);
    else
      out += text[i];
  }
  return out;
}

bool has_word(std::string_view list, std::string_view word) {
  for (size_t at = list.find(word); at != list.npos; at = list.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || list[at - 1] == ' ') && (end == list.size() || list[end] == ' ')) return true;
  }
  return false;
}

constexpr std::string_view kName = "weft_loop";

class Renderer {
 public:
  Renderer(const LoopKernel& k, const Dialect& d) : k_(k), d_(d), needed_(d.helpers.size(), false) {}

  Result<Function> run() {
    WEFT_CHECK(types());
    WEFT_CHECK(groups());
    for (Id id = 0; id < k_.nodes.size(); ++id) WEFT_CHECK(statement(id, k_.nodes[id]));
    return Function{k_.fragment ? body_ : head() + body_ + (k_.group ? "}\n" : d_.end), needed_};
  }

 private:
  /// Refuses types that the dialect lacks, and requests the helpers that a type needs.
  Status types() {
    for (const Buffer& b : k_.buffers) {
      if (!d_.storage[static_cast<int>(b.dtype)])
        return fail(Code::unsupported, "{} cannot store {}", d_.name, name(b.dtype));
      need(d_.type_helpers[static_cast<int>(b.dtype)]);
    }
    for (const Node& n : k_.nodes) {
      if (!d_.registers[static_cast<int>(n.type)])
        return fail(Code::unsupported, "{} has no {}", d_.name, name(n.type));
      need(d_.type_helpers[static_cast<int>(n.type)]);
    }
    return {};
  }
  /// Refuses groups that are larger than the dialect's.
  Status groups() const {
    if (k_.group > d_.group_items)
      return fail(Code::unsupported, "{} has groups of {} items at most, got {}", d_.name, d_.group_items,
                  k_.group);
    uint64_t bytes = 0;
    for (const Node& n : k_.nodes)
      if (n.op == Op::shared) bytes += n.bits * (n.type == Type::index ? 4 : byte_size(dtype_of(n.type)));
    if (bytes > d_.shared_bytes)
      return fail(Code::unsupported, "{} lets a group share {} bytes at most, got {}", d_.name,
                  d_.shared_bytes, bytes);
    return {};
  }
  void need(const char* helpers) {
    for (size_t i = 0; helpers && i < needed_.size(); ++i)
      if (has_word(helpers, d_.helpers[i].name)) needed_[i] = true;
  }

  std::string head() const {
    std::string parameters;
    const auto add = [&](const std::string& p) { parameters += (parameters.empty() ? "" : ", ") + p; };
    for (size_t i = 0; i < k_.buffers.size(); ++i) {
      const Buffer& b = k_.buffers[i];
      add(expand(b.written ? d_.write_buffer : d_.read_buffer, [&](char c) {
        return c == 't' ? std::string(d_.storage[static_cast<int>(b.dtype)]) : fmt::format("b{}", i);
      }));
    }
    for (size_t i = 0; i < k_.buffers.size(); ++i)
      add(expand(d_.offset, [&](char) { return fmt::format("o{}", i); }));
    for (uint32_t i = 0; i < k_.scalars; ++i)
      add(expand(d_.scalar, [&](char) { return fmt::format("s{}", i); }));
    std::string text = expand(k_.group ? d_.open_groups : d_.open, [&](char c) {
      return c == 'g' ? fmt::format("{}", k_.group) : std::string(kName);
    });
    std::string advance;
    for (size_t i = 0; i < k_.buffers.size(); ++i)
      advance += "  " + expand(d_.advance, [&](char c) { return fmt::format("{}{}", c, i); }) + "\n";
    const bool loops = std::ranges::any_of(k_.nodes, [](const Node& n) { return n.op == Op::loop; });
    return text + parameters + expand(k_.group ? d_.close_groups : d_.close, [&](char c) -> std::string {
             return c == 'a' ? advance : c == 'u' ? loops ? "" : d_.unroll : "s0";
           });
  }

  Status statement(Id id, const Node& n) {
    if (n.op == Op::end) return indent_.resize(indent_.size() - 2), line("}");
    if (n.op == Op::assign) return line(fmt::format("v{} = v{};", n.in[0], n.in[1]));
    if (n.op == Op::result) return line(fmt::format("out{} = v{};", n.slot, n.in[0]));
    if (n.op == Op::loop) {
      const Status s =
          line(expand(d_.loop, [&](char c) { return fmt::format("v{}", c == 'v' ? id : n.in[0]); }));
      indent_ += "  ";
      return s;
    }
    std::string expression;
    if (n.op == Op::shared)
      return line(expand(d_.shared, [&](char c) {
        return c == 't' ? registers(n.type) : c == 'v' ? fmt::format("v{}", id) : fmt::format("{}", n.bits);
      }));
    if (n.op == Op::parameter) {
      expression = fmt::format("in{}", n.slot);
    } else if (n.op == Op::accumulator) {
      expression = fmt::format("v{}", n.in[0]);
    } else {
      WEFT_TRY(expression, spell(id, n));
    }
    if (n.op == Op::store && n.in[2] != kNone)
      return line(
          expand(d_.guarded, [&](char c) { return c == 'e' ? expression : fmt::format("v{}", n.in[2]); }));
    if (n.op == Op::store || n.op == Op::store_shared || n.op == Op::barrier) return line(expression);
    return line(expand(n.op == Op::accumulator ? d_.variable : d_.constant_value, [&](char c) {
      return c == 't' ? registers(n.type) : c == 'v' ? fmt::format("v{}", id) : expression;
    }));
  }

  /// The expression of the first rule that fits.
  Result<std::string> spell(Id id, const Node& n) {
    const Type operand = n.in[0] == kNone ? n.type : k_.nodes[n.in[0]].type;
    for (const Rule& r : d_.rules) {
      if (r.op != n.op || !(r.result & set_of(n.type)) || !(r.operand & set_of(operand))) continue;
      if (r.op == Op::load &&
          (n.in[1] == kNone) != (std::string_view(r.text).find("$1") == std::string_view::npos))
        continue;
      const bool rounds = std::string_view(r.text).find("$[") != std::string_view::npos;
      for (const char* helpers : {r.helpers, rounds ? rounding(n.type) : ""}) {
        if (k_.fragment && *helpers)
          return fail(Code::unsupported, "%{} {}: its text in {} calls {}, which statements cannot define",
                      id, name(n.op), d_.name, helpers);
        need(helpers);
      }
      return expand(r.text, [&](char c) { return field(n, c); });
    }
    return fail(Code::unsupported, "{} has no spelling of %{} {} {}({})", d_.name, id, name(n.type),
                name(n.op), name(operand));
  }
  std::string field(const Node& n, char c) const {
    switch (c) {
      case 't': return registers(n.type);
      case 'b': return fmt::format("b{}", n.slot);
      case 's': return fmt::format("s{}", n.slot);
      case 'S': return fmt::format("s{}", n.slot + 1);
      case 'x': return fmt::format("0x{:x}", n.bits);
      case 'd': return fmt::format("{}", static_cast<int64_t>(n.bits));
      case '[': return *rounding(n.type) ? fmt::format("{}(", rounding(n.type)) : "";
      case ']': return *rounding(n.type) ? ")" : "";
      default: return fmt::format("v{}", n.in[c - '0']);
    }
  }
  /// The helper that rounds to `t`, or nothing.
  const char* rounding(Type t) const {
    const char* helper = d_.rounding[static_cast<int>(t)];
    return helper ? helper : "";
  }
  std::string registers(Type t) const { return d_.registers[static_cast<int>(t)]; }
  Status line(const std::string& text) {
    body_ += indent_ + text + "\n";
    return {};
  }

  const LoopKernel& k_;
  const Dialect& d_;
  std::vector<bool> needed_;
  std::string body_, indent_ = "  ";
};

}  // namespace

Result<Function> render_function(const LoopKernel& kernel, const Dialect& dialect) {
  return Renderer(kernel, dialect).run();
}

std::string entry_of(size_t i) { return fmt::format("{}_{}", kName, i); }

std::string program_of(std::span<const Function* const> functions, const Dialect& dialect) {
  std::string program = dialect.prelude;
  for (size_t h = 0; h < dialect.helpers.size(); ++h)
    if (std::any_of(functions.begin(), functions.end(), [h](const Function* f) { return f->helpers[h]; }))
      program += std::string(dialect.helper) + dialect.helpers[h].text;
  for (size_t i = 0; i < functions.size(); ++i) {
    std::string text = functions[i]->text;
    program += text.replace(text.find(kName), kName.size(), entry_of(i));
  }
  return program;
}

Result<std::string> render(const LoopKernel& kernel, const Dialect& dialect) {
  WEFT_TRY(const Function f, render_function(kernel, dialect));
  const Function* const one[] = {&f};
  return kernel.fragment ? f.text : program_of(one, dialect);
}

}  // namespace weft::codegen
