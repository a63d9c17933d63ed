#include <charconv>

#include "base/dims.h"
#include "ir/graph.h"

// The text form of a graph. One statement a line:
//   symbol batch 1 512
//   input x %0: f32[batch, 16]
//   state w %1: f32[16, 8] -> %9
//   %2: f32[batch, 8] = matmul(%0, %1) {transpose_a=0, transpose_b=0} "hidden.matmul"
//   output y %2
namespace weft::ir {
namespace {

std::string typed(const Graph& g, int32_t id) {
  return fmt::format("%{}: {}", id, text(g.types[static_cast<size_t>(id)]));
}

std::string print_node(const Graph& g, const Node& n) {
  std::string line;
  for (size_t i = 0; i < n.outputs.size(); ++i) line += (i ? ", " : "") + typed(g, n.outputs[i]);
  line += fmt::format(" = {}(", n.op->name);
  for (size_t i = 0; i < n.inputs.size(); ++i)
    line += fmt::format("{}{}", i ? ", " : "", n.inputs[i] < 0 ? "_" : fmt::format("%{}", n.inputs[i]));
  line += ")";
  for (size_t i = 0; i < n.attrs.size(); ++i)
    line += fmt::format("{}{}={}", i ? ", " : " {", n.op->attrs[i].name, text(n.attrs[i]));
  if (!n.attrs.empty()) line += "}";
  return line + " \"" + n.where + "\"\n";
}

// Words and punctuation of one line.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text) {}

  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  bool done() {
    skip();
    return at_ == text_.size();
  }
  std::string_view word() {
    skip();
    const size_t from = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  std::string_view("_.-").find(text_[at_]) != std::string_view::npos))
      ++at_;
    return text_.substr(from, at_ - from);
  }
  // Text up to one of `stops` outside of brackets.
  std::string_view until(std::string_view stops) {
    skip();
    const size_t from = at_;
    for (int depth = 0; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && stops.find(c) != stops.npos) break;
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
    }
    return text_.substr(from, at_ - from);
  }
  std::string_view quoted() {
    if (!take("\"")) return {};
    const size_t from = at_;
    while (at_ < text_.size() && text_[at_] != '"') ++at_;
    const auto inside = text_.substr(from, at_ - from);
    if (at_ < text_.size()) ++at_;
    return inside;
  }
  Result<int64_t> integer() {
    skip();
    int64_t v = 0;
    const auto [end, bad] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (bad != std::errc()) return invalid("wanted an integer at '{}'", text_.substr(at_, 20));
    at_ = static_cast<size_t>(end - text_.data());
    return v;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

class Parser {
 public:
  Result<Graph> run(std::string_view text) {
    size_t number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      ++number;
      const auto line = text.substr(0, end);
      if (!line.empty() && line[0] != '#') WEFT_CHECK(statement(line).at(fmt::format("line {}", number)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    WEFT_CHECK(verify(g_));
    return std::move(g_);
  }

 private:
  Status statement(std::string_view text) {
    Line line(text);
    WEFT_CHECK(statement(line));
    if (!line.done()) return invalid("text after the end of the statement");
    return {};
  }
  Status statement(Line& line) {
    if (line.take("symbol ")) return symbol(line);
    if (line.take("input ")) return port(line, &g_.inputs);
    if (line.take("weight ")) return port(line, &g_.weights);
    if (line.take("state ")) return state(line);
    if (line.take("output ")) {
      const std::string name(line.word());
      WEFT_TRY(const int32_t id, value(line));
      g_.outputs.push_back({name, id});
      return {};
    }
    return node(line);
  }
  Status symbol(Line& line) {
    Symbol s{std::string(line.word())};
    WEFT_TRY(s.min, line.integer());
    WEFT_TRY(s.max, line.integer());
    symbols_.push_back(std::move(s));
    return {};
  }
  Status port(Line& line, std::vector<Graph::Named>* list) {
    const std::string name(line.word());
    WEFT_TRY(const int32_t id, typed_value(line));
    list->push_back({name, id});
    return {};
  }
  Status state(Line& line) {
    const std::string name(line.word());
    WEFT_TRY(const int32_t before, typed_value(line));
    if (!line.take("->")) return invalid("wanted '->' in state {}", name);
    WEFT_TRY(const int32_t after, value(line));
    g_.states.push_back({name, before, after});
    return {};
  }
  Result<int32_t> value(Line& line) {
    if (!line.take("%")) return invalid("wanted a value such as %3");
    WEFT_TRY(const int64_t id, line.integer());
    if (id < 0 || id > 1'000'000) return invalid("value %{} is out of range", id);
    return static_cast<int32_t>(id);
  }
  Result<int32_t> typed_value(Line& line) {
    WEFT_TRY(const int32_t id, value(line));
    if (!line.take(":")) return invalid("wanted ': type' after %{}", id);
    const auto dtype_text = line.word();
    const auto dtype = dtype_from_name(dtype_text);
    if (!dtype) return invalid("unknown dtype '{}'", dtype_text);
    WEFT_TRY(Shape shape, dims(line));
    if (g_.types.size() <= static_cast<size_t>(id)) g_.types.resize(static_cast<size_t>(id) + 1);
    g_.types[static_cast<size_t>(id)] = {*dtype, std::move(shape)};
    return id;
  }
  Result<Shape> dims(Line& line) {
    if (!line.take("[")) return invalid("wanted '['");
    Shape shape;
    while (!line.take("]")) {
      if (line.done()) return invalid("missing ']'");
      std::string expression(line.until(",]"));
      WEFT_TRY(const Dim d, read_dim(expression, symbols_));
      shape.push_back(d);
      line.take(",");
    }
    return shape;
  }
  Status node(Line& line) {
    Node n;
    do {
      WEFT_TRY(const int32_t id, typed_value(line));
      n.outputs.push_back(id);
    } while (line.take(","));
    if (!line.take("=")) return invalid("wanted '='");
    const auto name = line.word();
    n.op = find_op(name);
    if (!n.op) return invalid("no op named '{}'", name);
    if (!line.take("(")) return invalid("wanted '('");
    while (!line.take(")")) {
      if (line.done()) return invalid("missing ')'");
      if (line.take("_")) {
        n.inputs.push_back(-1);
      } else {
        WEFT_TRY(const int32_t id, value(line));
        n.inputs.push_back(id);
      }
      line.take(",");
    }
    WEFT_CHECK(attributes(line, n));
    n.where = std::string(line.quoted());
    g_.nodes.push_back(std::move(n));
    return {};
  }
  Status attributes(Line& line, Node& n) {
    std::vector<Attr> attrs;
    if (line.take("{")) {
      while (!line.take("}")) {
        if (line.done()) return invalid("missing '}}'");
        Attr a{std::string(line.word()), int64_t{0}};
        if (!line.take("=")) return invalid("wanted '=' after attribute '{}'", a.name);
        if (line.take("\"")) {
          a.value = std::string(line.until("\""));
          line.take("\"");
        } else {
          WEFT_TRY(a.value, number_or_dims(line));
        }
        attrs.push_back(std::move(a));
        line.take(",");
      }
    }
    WEFT_TRY(n.attrs, order_attrs(*n.op, attrs));
    return {};
  }
  Result<AttrValue> number_or_dims(Line& line) {
    const std::string text(line.until(",}"));
    if (!text.empty() && text[0] == '[') {
      Line inner(text);
      WEFT_TRY(Shape shape, dims(inner));
      return AttrValue(std::move(shape));
    }
    int64_t i = 0;
    const char* end = text.data() + text.size();
    if (const auto r = std::from_chars(text.data(), end, i); r.ec == std::errc() && r.ptr == end)
      return AttrValue(i);
    double d = 0;
    if (const auto r = std::from_chars(text.data(), end, d); r.ec == std::errc() && r.ptr == end)
      return AttrValue(d);
    return invalid("'{}' is no number and no list", text);
  }

  Graph g_;
  std::vector<Symbol> symbols_;
};

}  // namespace

std::string print(const Graph& g) {
  std::vector<Symbol> symbols;
  for (const auto& t : g.types)
    for (const Dim d : t.shape) collect_symbols(d, symbols);
  for (const auto& n : g.nodes)
    for (const auto& a : n.attrs)
      if (const auto* shape = std::get_if<Shape>(&a))
        for (const Dim d : *shape) collect_symbols(d, symbols);
  std::string out;
  for (const auto& s : symbols) out += fmt::format("symbol {} {} {}\n", s.name, s.min, s.max);
  for (const auto& i : g.inputs) out += fmt::format("input {} {}\n", i.name, typed(g, i.value));
  for (const auto& w : g.weights) out += fmt::format("weight {} {}\n", w.name, typed(g, w.value));
  for (const auto& s : g.states)
    out += fmt::format("state {} {} -> %{}\n", s.name, typed(g, s.before), s.after);
  for (const auto& n : g.nodes) out += print_node(g, n);
  for (const auto& o : g.outputs) out += fmt::format("output {} %{}\n", o.name, o.value);
  return out;
}

Result<Graph> parse(std::string_view text) {
  try {
    return Parser().run(text);
  } catch (const Error& e) {  // a shape rule met a size that overflows Dim
    return e.status();
  }
}

}  // namespace weft::ir
