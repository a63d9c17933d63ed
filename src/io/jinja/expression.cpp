#include <charconv>
#include <cmath>

#include "io/jinja/parser.h"

// Expressions, from the lowest to the highest precedence.
namespace weft::io::jinja {
namespace {

using Kind = Token::Kind;

Expression constant(Value v) {
  return [v = std::move(v)](Scope&) { return v; };
}

struct Operands {
  std::vector<Expression> positional;
  std::vector<std::pair<std::string, Expression>> named;

  Arguments operator()(Scope& s) const {
    Arguments a;
    for (const auto& e : positional) a.positional.push_back(e(s));
    for (const auto& [name, e] : named) a.named.emplace_back(name, e(s));
    return a;
  }
};

constexpr size_t kMostArguments = 255;  // map("map", "map", ...) takes some of the stack for each

// After the opening bracket.
Operands arguments(Reader& r) {
  Operands call;
  while (!r.takes_op(")")) {
    if (call.positional.size() >= kMostArguments) throw r.unsupported("a call with this many arguments");
    if (r.is_op("*") || r.is_op("**")) throw r.unsupported("a list of arguments");
    if (r.now().kind == Kind::name && r.next().kind == Kind::op && r.next().text == "=") {
      const std::string name = r.take().text;
      r.take();
      call.named.emplace_back(name, expression(r));
    } else {
      if (!call.named.empty()) throw r.wanted("a named argument");
      call.positional.push_back(expression(r));
    }
    if (!r.is_op(")")) r.expect_op(",");
  }
  return call;
}

Value number(const Token& t) {
  if (t.kind == Kind::real) return std::strtod(t.text.c_str(), nullptr);
  int64_t value = 0;
  if (std::from_chars(t.text.data(), t.text.data() + t.text.size(), value).ec != std::errc())
    throw Error(fail(Code::unsupported, "chat template, line {}: {} is beyond 64 bits", t.line, t.text));
  return value;
}

// After the opening bracket; `trailing` is set if a comma ended the list.
std::vector<Expression> list_until(Reader& r, std::string_view closing, bool* trailing = nullptr) {
  std::vector<Expression> all;
  while (!r.takes_op(closing)) {
    all.push_back(expression(r));
    const bool comma = r.takes_op(",");
    if (trailing) *trailing = comma;
    if (!comma && !r.is_op(closing)) throw r.wanted(fmt::format("',' or '{}'", closing));
  }
  return all;
}
Expression list_of(std::vector<Expression> all) {
  return [all = std::move(all)](Scope& s) -> Value {
    List l;
    for (const auto& e : all) l.push_back(e(s));
    return l;
  };
}

Expression dict(Reader& r) {
  std::vector<std::pair<Expression, Expression>> all;
  while (!r.takes_op("}")) {
    Expression key = expression(r);
    r.expect_op(":");
    all.emplace_back(std::move(key), expression(r));
    if (!r.is_op("}")) r.expect_op(",");
  }
  return [all = std::move(all)](Scope& s) -> Value {
    Dict d;
    for (const auto& [key, value] : all) {
      const Value k = key(s);
      if (!k.is_string()) throw Error(fail(Code::unsupported, "{} as the key of a dict", k.kind()));
      d.set(k.string(), value(s));
    }
    return d;
  };
}

Expression in_brackets(Reader& r) {
  bool comma = false;
  auto all = list_until(r, ")", &comma);
  if (all.size() == 1 && !comma) return all[0];
  return list_of(std::move(all));
}

Expression primary(Reader& r) {
  const Token t = r.take();
  switch (t.kind) {
    case Kind::name:
      if (t.text == "true" || t.text == "True") return constant(true);
      if (t.text == "false" || t.text == "False") return constant(false);
      if (t.text == "none" || t.text == "None") return constant(nullptr);
      return [name = t.text](Scope& s) { return s.get(name); };
    case Kind::string: {
      std::string text = t.text;  // adjacent strings are joined
      while (r.now().kind == Kind::string) text += r.take().text;
      return constant(std::move(text));
    }
    case Kind::integer:
    case Kind::real: return constant(number(t));
    case Kind::op:
      if (t.text == "(") return in_brackets(r);
      if (t.text == "[") return list_of(list_until(r, "]"));
      if (t.text == "{") return dict(r);
      break;
    default: break;
  }
  throw Error(fail(Code::corrupt, "chat template, line {}: wanted a value, got {}", t.line,
                   t.text.empty() ? "the end" : "'" + t.text + "'"));
}

/// Postfix operators of a value. A chain of them is a loop: only nesting takes stack.
using Step = std::function<Value(Scope&, const Value&)>;

Expression with_steps(Expression x, std::vector<Step> steps) {
  if (steps.empty()) return x;
  return [x = std::move(x), steps = std::move(steps)](Scope& s) {
    Value v = x(s);
    for (const Step& step : steps) v = step(s, v);
    return v;
  };
}

Step subscript(Reader& r) {
  Expression part[3];
  int n = 0;
  bool slice = false;
  while (!r.takes_op("]")) {
    if (r.takes_op(":")) {
      slice = true;
      if (++n > 2) throw r.wanted("']'");
    } else {
      part[n] = expression(r);
      if (!r.is_op(":") && !r.is_op("]")) throw r.wanted("':' or ']'");
    }
  }
  if (!slice && !part[0]) throw r.wanted("an index");
  if (!slice) return [i = std::move(part[0])](Scope& s, const Value& x) { return item(x, i(s)); };
  return [a = std::move(part[0]), b = std::move(part[1]), c = std::move(part[2])](Scope& s, const Value& x) {
    const auto given = [&](const Expression& e) { return e ? e(s) : Value(nullptr); };
    return sliced(x, given(a), given(b), given(c));
  };
}

Value called(const Value& f, const Arguments& a) {
  if (f.is_undefined()) throw Error(invalid("'{}' is undefined", f.undefined().name));
  if (!f.is_function()) throw Error(invalid("{} can't be called", f.kind()));
  return f.function()(a);
}

// x.name, or the call of a method.
Step member(Reader& r) {
  if (r.now().kind == Kind::integer) {
    return [i = number(r.take())](Scope&, const Value& x) { return item(x, i); };
  }
  const std::string name = r.expect_name();
  if (!r.takes_op("(")) return [name](Scope&, const Value& x) { return item(x, name); };
  return [name, call = arguments(r)](Scope& s, const Value& x) {
    const Value* own = x.is_dict() && !is_method(name) ? x.dict().find(name) : nullptr;
    if (!own) return call_method(x, name, call(s));
    const Value f = *own;  // the arguments may change a namespace
    return called(f, call(s));
  };
}

Expression postfix(Reader& r, Expression x) {
  std::vector<Step> steps;
  for (;;) {
    if (r.takes_op("."))
      steps.push_back(member(r));
    else if (r.takes_op("["))
      steps.push_back(subscript(r));
    else if (r.takes_op("("))
      steps.push_back([call = arguments(r)](Scope& s, const Value& f) { return called(f, call(s)); });
    else
      return with_steps(std::move(x), std::move(steps));
  }
}

Step filtered(Reader& r) {
  std::string name = r.expect_name();
  if (!is_filter(name)) throw r.unsupported(fmt::format("the filter '{}'", name));
  Operands call = r.takes_op("(") ? arguments(r) : Operands();
  return [name = std::move(name), call = std::move(call)](Scope& s, const Value& x) {
    return call_filter(name, x, call(s));
  };
}

Step tested(Reader& r) {
  const bool holds = !r.takes_name("not");
  std::string name = r.expect_name();
  if (!is_test(name)) throw r.unsupported(fmt::format("the test '{}'", name));
  Operands call;
  const auto& t = r.now();
  const bool word = t.kind == Kind::name && t.text != "else" && t.text != "or" && t.text != "and" &&
                    t.text != "is" && t.text != "if" && t.text != "not" && t.text != "in";
  if (r.takes_op("("))
    call = arguments(r);
  else if (word || t.kind == Kind::string || t.kind == Kind::integer || t.kind == Kind::real ||
           r.is_op("[") || r.is_op("{"))
    call.positional.push_back(postfix(r, primary(r)));
  return [holds, name = std::move(name), call = std::move(call)](Scope& s, const Value& x) -> Value {
    return call_test(name, x, call(s)) == holds;
  };
}

Expression unary(Reader& r, bool with_filters = true) {
  const Reader::Deeper deeper(r);
  Expression x;
  if (r.takes_op("-")) {
    x = [y = unary(r, false)](Scope& s) { return negated(y(s)); };
  } else if (r.takes_op("+")) {
    x = unary(r, false);
  } else {
    x = postfix(r, primary(r));
  }
  std::vector<Step> steps;
  while (with_filters) {
    if (r.takes_op("|"))
      steps.push_back(filtered(r));
    else if (r.takes_name("is"))
      steps.push_back(tested(r));
    else
      break;
  }
  return with_steps(std::move(x), std::move(steps));
}

/// Operators of equal precedence, from left to right.
template <class Next>
Expression chain(Reader& r, std::initializer_list<std::string_view> ops, Next next) {
  Expression x = next(r);
  std::vector<Step> steps;
  for (;;) {
    std::string_view found;
    for (const auto op : ops)
      if (r.is_op(op)) found = op;
    if (found.empty()) return with_steps(std::move(x), std::move(steps));
    r.take();
    steps.push_back([op = std::string(found), b = next(r)](Scope& s, const Value& left) {
      return binary(op, left, b(s));
    });
  }
}
Expression power(Reader& r) {
  Expression x = unary(r);
  if (r.is_op("**")) throw r.unsupported("'**'");
  return x;
}
Expression product(Reader& r) { return chain(r, {"*", "/", "//", "%"}, power); }
Expression joined(Reader& r) { return chain(r, {"~"}, product); }
Expression sum(Reader& r) { return chain(r, {"+", "-"}, joined); }

// a < b < c is a < b and b < c.
Expression comparison(Reader& r) {
  Expression first = sum(r);
  std::vector<std::pair<std::string, Expression>> rest;
  for (;;) {
    std::string op;
    for (const std::string_view known : {"==", "!=", "<=", ">=", "<", ">"})
      if (op.empty() && r.takes_op(known)) op = known;
    if (op.empty() && r.takes_name("in")) op = "in";
    if (op.empty() && r.is_name("not") && r.next().kind == Kind::name && r.next().text == "in") {
      r.take(), r.take();
      op = "not in";
    }
    if (op.empty()) break;
    rest.emplace_back(op, sum(r));
  }
  if (rest.empty()) return first;
  return [first = std::move(first), rest = std::move(rest)](Scope& s) -> Value {
    Value left = first(s);
    for (const auto& [op, e] : rest) {
      Value right = e(s);
      if (!compared(op, left, right)) return false;
      left = std::move(right);
    }
    return true;
  };
}

Expression negation(Reader& r) {
  const Reader::Deeper deeper(r);
  if (!r.takes_name("not")) return comparison(r);
  return [x = negation(r)](Scope& s) -> Value { return !x(s).truth(); };
}

/// `and`, `or`: the operand that decides is the value.
Expression logic(Reader& r, const char* word, bool stops_at, Expression (*next)(Reader&)) {
  std::vector<Expression> all = {next(r)};
  while (r.takes_name(word)) all.push_back(next(r));
  if (all.size() == 1) return all[0];
  return [all = std::move(all), stops_at](Scope& s) {
    Value v;
    for (const auto& e : all)
      if (v = e(s); v.truth() == stops_at) break;
    return v;
  };
}
Expression conjunction(Reader& r) { return logic(r, "and", false, negation); }

}  // namespace

Expression disjunction(Reader& r) { return logic(r, "or", true, conjunction); }

Expression expression(Reader& r) {
  const Reader::Deeper deeper(r);
  Expression x = disjunction(r);
  std::vector<std::pair<Expression, Expression>> conditions;  // each with the value if it does not hold
  while (r.takes_name("if")) {
    Expression condition = disjunction(r), other = constant(Undefined{"the other side of an if"});
    if (r.takes_name("else")) other = expression(r);
    conditions.emplace_back(std::move(condition), std::move(other));
  }
  if (conditions.empty()) return x;
  return [x = std::move(x), conditions = std::move(conditions)](Scope& s) {
    for (auto at = conditions.rbegin(); at != conditions.rend(); ++at)  // the last is the outermost
      if (!at->first(s).truth()) return at->second(s);
    return x(s);
  };
}

Expression expressions(Reader& r) {
  std::vector<Expression> all = {expression(r)};
  bool list = false;
  while (r.takes_op(",")) {
    list = true;
    if (r.now().kind == Kind::end_block || r.now().kind == Kind::end_print) break;
    all.push_back(expression(r));
  }
  return list ? list_of(std::move(all)) : all[0];
}

}  // namespace weft::io::jinja
