#include "cli/source/source.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "cli/source/expression.h"
#include "cli/source/main_text.h"
#include "cli/source/names.h"
#include "cli/source/repeat.h"

namespace weft::cli::source {
namespace {

using program::CompiledProgram;

constexpr size_t kLongestNested = 64;  // a text that is longer gets a variable
constexpr size_t kLongestFirst = 160;  // but for what a loop begins with: it has one there

/// Words that no variable may be: those of the language, functions that are called, and what main() has.
std::set<std::string> taken_words() {
  std::set<std::string> words = {
      "alignas",  "auto",      "bool",     "break",    "case",     "catch",     "char",     "class",
      "const",    "continue",  "default",  "delete",   "do",       "double",    "else",     "enum",
      "explicit", "export",    "extern",   "false",    "float",    "for",       "friend",   "goto",
      "if",       "inline",    "int",      "long",     "mutable",  "new",       "operator", "private",
      "public",   "return",    "short",    "signed",   "sizeof",   "static",    "struct",   "switch",
      "this",     "throw",     "true",     "try",      "typedef",  "union",     "using",    "void",
      "volatile", "while",     "template", "typename", "unsigned", "main",      "std",      "weft",
      "Tensor",   "Dim",       "DType",    "Shape",    "Weights",  "w",         "layer",    "at",
      "file",     "floor_div", "argc",     "argv",     "i",        "io",        "fmt",      "load_weights",
      "and",      "or",        "not",      "xor",      "register", "namespace", "asm"};
  for (const auto* op : ir::all_ops()) words.insert(op->name);
  return words;
}

class Printer {
 public:
  Printer(const CompiledProgram& p, Listing listing)
      : p_(p), l_(std::move(listing)), loops_(find_loops(l_)), names_(taken_words()) {}

  Result<std::string> run(const std::string& file) {
    count_uses();
    WEFT_CHECK(beginning(file));
    size_t loop = 0;
    for (size_t n = 0; n < l_.lines.size();) {
      if (loop < loops_.size() && loops_[loop].begin == n) {
        print_loop(loops_[loop]);
        n = loops_[loop++].end();
      } else {
        heading(l_.lines[n].where);
        print_line(n++);
      }
    }
    ending();
    out_ += main_text(p_, function_);
    return std::move(out_);
  }

 private:
  // ---- what is read where

  struct Fact {
    size_t uses = 0, last_use = 0;
    const Loop* loop = nullptr;  // in whose first round it is made
    bool keeps = false;          // it must have a variable
    bool begins = false;         // a loop begins with it
    std::string all;             // the list of it of all rounds, if it is read by round
    bool listed = false;
    bool behind = false;  // that of the last round is read behind the loop
    std::string nested;   // the text that stands where it is read
    Binding binding = Binding::whole;
    std::string name;
  };
  Fact& fact(Id id) { return facts_[static_cast<size_t>(canonical(id))]; }

  /// A value of a loop's last round is the variable of its first one.
  Id canonical(Id id) const {
    const Value& v = l_.at(id);
    if (v.kind != Value::Kind::made) return id;
    for (const Loop& loop : loops_)
      if (v.line >= loop.last_round() && v.line < loop.end())
        return l_.lines[v.line - loop.last_round() + loop.begin].outputs[v.result];
    return id;
  }
  const Loop* loop_of(size_t line) const {
    for (const Loop& loop : loops_)
      if (line >= loop.begin && line < loop.end()) return &loop;
    return nullptr;
  }

  /// Is it read from the list of its loop, outside that: is it not only the last round's that is read?
  bool by_round(Id id, const Loop* reader, int64_t moves) const {
    const Value& v = l_.at(id);
    const Loop* loop = v.kind == Value::Kind::made ? loop_of(v.line) : nullptr;
    return loop && loop != reader &&
           (moves != 0 || v.line < loop->last_round() ||
            facts_[static_cast<size_t>(loop->place(l_, v).first)].listed);
  }
  void use(Id id, size_t line, const Loop* loop, int64_t moves = 0) {
    if (id == kNone) return;
    if (by_round(id, loop, moves)) {
      const Value& v = l_.at(id);
      Fact& f = facts_[static_cast<size_t>(loop_of(v.line)->place(l_, v).first)];
      ++f.uses, f.keeps = f.listed = true;
      return;
    }
    Fact& f = fact(id);
    ++f.uses;
    f.last_use = line;
    if (f.loop != loop) f.keeps = true;  // made inside and read outside, or the other way round
  }
  void count_uses() {
    facts_.resize(l_.values.size());
    for (const Loop& loop : loops_)
      for (size_t n = loop.begin; n < loop.begin + loop.period; ++n)
        for (const Id id : l_.lines[n].outputs) fact(id).loop = &loop;
    for (size_t n = 0; n < l_.lines.size(); ++n) {
      const Loop* loop = loop_of(n);
      if (loop && n == loop->begin)
        for (const Carried& c : loop->carried)
          use(c.first, n, nullptr), fact(c.first).begins = true, fact(c.made).keeps = true;
      if (loop && n >= loop->begin + loop->period) continue;
      for (size_t i = 0; i < l_.lines[n].inputs.size(); ++i)
        if (!loop || loop->carries[n - loop->begin][i] < 0)
          use(l_.lines[n].inputs[i], n, loop, loop ? loop->moves[n - loop->begin][i] : 0);
    }
    for (const Id id : l_.outputs) use(id, l_.lines.size(), nullptr);
  }

  bool updates_between(size_t from, size_t to) const {
    for (size_t n = from + 1; n < std::min(to + 1, l_.lines.size()); ++n)
      if (l_.lines[n].updates()) return true;
    return false;
  }
  bool nests(size_t n, const Fact& f) const {
    const Line& line = l_.lines[n];
    return line.op->n_public == 1 && !line.updates() && f.uses == 1 && !f.keeps &&
           !updates_between(n, f.last_use);
  }

  // ---- names

  std::string name_of(Id id, const Line& line, bool in_loop) {
    std::vector<std::string> wishes;
    for (size_t k = 0; k < l_.outputs.size(); ++k)
      if (canonical(l_.outputs[k]) == canonical(id)) wishes.push_back(p_.outputs[k].name);
    auto by_node = wishes_of(line.where, line.op->name, in_loop);
    // A node that is named after its op says less than the layer whose weights it reads.
    for (const Id in : line.inputs)
      if (in != kNone && l_.at(in).kind == Value::Kind::stored)
        by_node.insert(by_node.begin() + std::min<ptrdiff_t>(1, std::ssize(by_node)),
                       layer_of(l_.at(in).name));
    wishes.insert(wishes.end(), by_node.begin(), by_node.end());
    if (wishes.empty()) wishes.push_back(line.op->name);
    return names_.take(wishes);
  }

  // ---- texts

  Text value_text(Id id, int64_t moves = 0) {
    Fact& f = fact(id);
    const Value& v = l_.at(id);
    if (by_round(id, loop_, moves)) {
      const Loop& loop = *loop_of(v.line);
      const InRound at = loop.place(l_, v);
      const std::string round = loop_
                                    ? loop_->number_text(at.round, moves / static_cast<int64_t>(loop.period))
                                    : fmt::format("{}", at.round);
      return {fmt::format("{}[{}]", facts_[static_cast<size_t>(at.first)].all, round)};
    }
    if (v.kind == Value::Kind::stored) return {stored_text(id)};
    if (v.kind == Value::Kind::number) return {full_text(v)};
    if (!f.nested.empty()) return {std::exchange(f.nested, ""), f.binding};
    return {f.name};
  }
  std::string stored_text(Id id) const {
    if (loop_) {
      if (const auto at = loop_->counted.find(id); at != loop_->counted.end()) {
        const auto& [before, after, first, step] = at->second;
        const std::string number = loop_->number_text(first, step);
        if (number == "i" && before == prefix_ && after.starts_with('.'))
          return fmt::format("layer({})", literal(after.substr(1)));
        return fmt::format("w.at({} + std::to_string({}){})", literal(before), number,
                           after.empty() ? "" : " + " + literal(after));
      }
    }
    return fmt::format("w.at({})", literal(l_.at(id).name));
  }
  Text operand_text(size_t n, size_t i) {
    if (loop_)
      if (const int c = loop_->carries[n - loop_->begin][i]; c >= 0)
        return {carried_[static_cast<size_t>(c)]};
    return value_text(l_.lines[n].inputs[i], loop_ ? loop_->moves[n - loop_->begin][i] : 0);
  }

  void put(const std::string& text) { out_ += statement(text, loop_ ? 4 : 2); }

  // ---- lines

  void print_line(size_t n) {
    const Line& line = l_.lines[n];
    const Text call = call_text(l_, line, [&](size_t i) { return operand_text(n, i); });
    const bool read =
        std::ranges::any_of(line.outputs, [&](Id id) { return fact(id).uses > 0 || fact(id).keeps; });
    if (!read) {
      if (line.updates()) put((line.outputs.empty() ? "" : "(void)") + call.text + ";");
      return;
    }
    if (line.outputs.size() > 1) return print_results(line, call.text);
    const Id id = line.outputs[0];
    Fact& f = fact(id);
    if (nests(n, f) && call.text.size() <= (f.begins ? kLongestFirst : kLongestNested)) {
      f.nested = call.text, f.binding = call.binding;
      return;
    }
    if (const int slot = slot_of(id); slot >= 0 && assigns_at_once(n, slot)) {
      f.name = carried_[static_cast<size_t>(slot)];
      put(fmt::format("{} = {};", f.name, call.text));
    } else if (!f.name.empty()) {  // declared before the loop
      put(fmt::format("{} = {};", f.name, call.text));
    } else {
      f.name = name_of(id, line, loop_ != nullptr);
      put(fmt::format("const Tensor {} = {};", f.name, call.text));
    }
    keep_in_list(f);
  }
  void keep_in_list(const Fact& f) {
    if (f.listed && loop_) put(fmt::format("{}.push_back({});", f.all, f.name));
  }

  void print_results(const Line& line, const std::string& call) {
    std::vector<std::string> names, late;
    for (const Id id : line.outputs) {
      Fact& f = fact(id);
      names.push_back(name_of(id, line, loop_ != nullptr));
      if (!f.name.empty()) late.push_back(fmt::format("{} = {};", f.name, names.back()));
      if (f.name.empty()) f.name = names.back();
    }
    put(fmt::format("const auto [{}] = {};", fmt::join(names, ", "), call));
    for (const auto& text : late) put(text);
    for (const Id id : line.outputs) keep_in_list(fact(id));
  }

  // ---- loops

  int slot_of(Id id) const {
    if (!loop_) return -1;
    const auto at = std::ranges::find(loop_->carried, id, &Carried::made);
    return at == loop_->carried.end() ? -1 : static_cast<int>(at - loop_->carried.begin());
  }
  /// What the round before gave is not read any more behind line `n`.
  bool assigns_at_once(size_t n, int slot) const {
    for (size_t o = n - loop_->begin + 1; o < loop_->period; ++o)
      if (std::ranges::count(loop_->carries[o], slot)) return false;
    return std::ranges::count(loop_->carried, loop_->carried[static_cast<size_t>(slot)].made,
                              &Carried::made) == 1;
  }

  void print_loop(const Loop& loop) {
    const Line& first = l_.lines[loop.begin];
    carried_.clear();
    for (const Carried& c : loop.carried) {
      const Value& made = l_.at(c.made);
      const auto init = value_text(c.first).text;
      carried_.push_back(loop.carried.size() == 1 ? names_.take({"x"})
                                                  : name_of(c.made, l_.lines[made.line], true));
      put(fmt::format("Tensor {} = {};", carried_.back(), init));
    }
    for (size_t n = loop.begin; n < loop.begin + loop.period; ++n)
      for (const Id id : l_.lines[n].outputs) declare_before(loop, id, l_.lines[n]);
    const int64_t end = loop.from + loop.step * loop.times;
    put(loop.step > 0 ? fmt::format("for (int i = {}; i < {}; ++i) {{", loop.from, end)
                      : fmt::format("for (int i = {}; i > {}; --i) {{", loop.from, end));
    loop_ = &loop;
    heading_ = numbered_scope(first.where);
    begin_layer(loop);
    for (size_t n = loop.begin; n < loop.begin + loop.period; ++n) print_line(n);
    end_round(loop);
    loop_ = nullptr;
    put("}");
    for (size_t c = 0; c < loop.carried.size(); ++c) fact(loop.carried[c].made).name = carried_[c];
  }
  /// What is read behind the loop: of all rounds, or of the last one.
  void declare_before(const Loop& loop, Id id, const Line& line) {
    Fact& f = fact(id);
    if (!f.uses || !f.keeps) return;
    if (f.listed) {
      const auto wishes = wishes_of(line.where, line.op->name, true);
      f.all = names_.take({"all_" + word(wishes.empty() ? line.op->name : wishes[0])});
      put(fmt::format("std::vector<Tensor> {};", f.all));
    }
    if (f.listed || std::ranges::count(loop.carried, id, &Carried::made) > 0) return;
    f.name = name_of(id, line, true);
    put(fmt::format("Tensor {};", f.name));
  }
  /// `layer("norm.weight")` stands for most of the names that count up.
  void begin_layer(const Loop& loop) {
    std::map<std::string, int> votes;
    for (const auto& [id, name] : loop.counted)
      if (name.after.starts_with('.') && loop.number_text(name.first, name.step) == "i") ++votes[name.before];
    prefix_.clear();
    if (votes.empty()) return;
    prefix_ = std::ranges::max_element(votes, {}, [](const auto& v) { return v.second; })->first;
    put(fmt::format("const std::string at = {} + std::to_string(i) + \".\";", literal(prefix_)));
    put("const auto layer = [&](const char* name) { return w.at(at + name); };");
  }
  void end_round(const Loop& loop) {
    std::vector<std::string> late;
    for (size_t c = 0; c < loop.carried.size(); ++c)
      if (const auto& name = fact(loop.carried[c].made).name; name != carried_[c])
        late.push_back(fmt::format("{} = {};", carried_[c], name));
    for (const auto& text : late) put(text);
  }

  // ---- around them

  void heading(const std::string& where) {
    const auto scope = numbered_scope(where);
    if (scope == heading_ || where.find('.') == where.npos) return;
    heading_ = scope;
    if (!scope.empty()) out_ += fmt::format("\n  // {}\n", scope);
  }

  Result<std::string> symbol_text(const Symbol& s) {
    for (size_t k = 0; k < p_.inputs.size(); ++k) {
      const auto& shape = p_.values[static_cast<size_t>(p_.inputs[k].value)].type.shape;
      for (size_t d = 0; d < shape.size(); ++d)
        if (shape[d] == Dim::symbol(s.name, s.min, s.max))
          return fmt::format("{}.dim({})", fact(l_.inputs[k]).name, d);
    }
    return fail(Code::unsupported, "symbol {} is no dimension of an input by itself", s.name);
  }

  std::string ports_text(const std::vector<program::Port>& ports) const {
    std::string s;
    for (const auto& port : ports)
      s += fmt::format("{}{} {}", s.empty() ? "" : ", ", port.name,
                       text(p_.values[static_cast<size_t>(port.value)].type));
    return s.empty() ? "nothing" : s;
  }
  bool one_output() const { return p_.outputs.size() == 1; }

  Status beginning(const std::string& file) {
    function_ = names_.take({p_.name, "run_program"});
    for (const auto& s : p_.symbols)
      if (names_.take({s.name}) != s.name)
        return fail(Code::unsupported, "symbol {} has the name of a function", s.name);
    std::string parameters;
    for (size_t k = 0; k < p_.inputs.size(); ++k) {
      const auto name = fact(l_.inputs[k]).name = names_.take({p_.inputs[k].name, p_.inputs[k].name + "_in"});
      parameters += fmt::format(", const Tensor& {}", name);
    }
    out_ = fmt::format(
        "// {}, as `weft trace` prints a program file: each call as the function that says what it means.\n"
        "// {}\n//   -> {}\n"
        "#include <cstdio>\n#include <limits>\n#include <map>\n#include <string>\n#include <vector>\n\n"
        "#include \"weft/einsum.h\"\n#include \"weft/jit.h\"\n#include \"weft/lists.h\"\n#include "
        "\"weft/ops.h\"\n"
        "#include \"weft/safetensors.h\"\n\nusing namespace weft;\n\n"
        "using Weights = std::map<std::string, Tensor>;  // states, too: an op that updates one does it "
        "here\n\n",
        literal(file), ports_text(p_.inputs), ports_text(p_.outputs));
    out_ += statement(fmt::format("{} {}([[maybe_unused]] const Weights& w{}) {{",
                                  one_output() ? "Tensor" : "std::vector<Tensor>", function_, parameters),
                      0);
    for (const auto& s : p_.symbols) {
      WEFT_TRY(const auto size, symbol_text(s));
      put(fmt::format("[[maybe_unused]] const Dim {} = {};", s.name, size));
    }
    return {};
  }

  void ending() {
    std::vector<std::string> results;
    for (const Id id : l_.outputs) results.push_back(value_text(id).text);
    put(one_output() ? fmt::format("return {};", results[0])
                     : fmt::format("return {{{}}};", fmt::join(results, ", ")));
    out_ += "}\n";
  }

  const CompiledProgram& p_;
  const Listing l_;
  const std::vector<Loop> loops_;
  Names names_;
  std::vector<Fact> facts_;
  const Loop* loop_ = nullptr;        // that is being printed
  std::vector<std::string> carried_;  // variables of its carried values
  std::string prefix_;                // of the names that `layer` makes
  std::string heading_, function_, out_;
};

}  // namespace

Result<std::string> source_text(const CompiledProgram& program, const std::string& file) {
  WEFT_TRY(auto listing, list(program));
  return Printer(program, std::move(listing)).run(file);
}

}  // namespace weft::cli::source
