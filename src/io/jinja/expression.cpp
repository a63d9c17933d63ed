#include <charconv>
#include <cmath>

#include "io/jinja/parser.h"

// Expressions, from what binds least to what binds most.
namespace weft::io::jinja {
namespace {

using Kind = Token::Kind;

Expression constant(Value v) {
  return [v = std::move(v)](Scope&) { return v; };
}

struct Call {
  std::vector<Expression> positional;
  std::vector<std::pair<std::string, Expression>> named;

  Arguments operator()(Scope& s) const {
    Arguments a;
    for (const auto& e : positional) a.positional.push_back(e(s));
    for (const auto& [name, e] : named) a.named.emplace_back(name, e(s));
    return a;
  }
};

// Behind the opening bracket.
Call arguments(Reader& r) {
  Call call;
  while (!r.takes_op(")")) {
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

// Behind the opening bracket; `trailing` says whether a comma came.
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
      std::string text = t.text;  // neighbours are one
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

Expression subscript(Reader& r, Expression x) {
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
  if (!slice) return [x = std::move(x), i = std::move(part[0])](Scope& s) { return item(x(s), i(s)); };
  return
      [x = std::move(x), a = std::move(part[0]), b = std::move(part[1]), c = std::move(part[2])](Scope& s) {
        const auto given = [&](const Expression& e) { return e ? e(s) : Value(nullptr); };
        return sliced(x(s), given(a), given(b), given(c));
      };
}

Value called(const Value& f, const Arguments& a) {
  if (f.is_undefined()) throw Error(invalid("'{}' is undefined", f.undefined().name));
  if (!f.is_function()) throw Error(invalid("{} can't be called", f.kind()));
  return f.function()(a);
}

// x.name, or the call of a method.
Expression member(Reader& r, Expression x) {
  if (r.now().kind == Kind::integer) {
    return [x = std::move(x), i = number(r.take())](Scope& s) { return item(x(s), i); };
  }
  const std::string name = r.expect_name();
  if (!r.takes_op("(")) return [x = std::move(x), name](Scope& s) { return item(x(s), name); };
  return [x = std::move(x), name, call = arguments(r)](Scope& s) {
    const Value object = x(s);
    const Value* own = object.is_dict() && !is_method(name) ? object.dict().find(name) : nullptr;
    return own ? called(*own, call(s)) : call_method(object, name, call(s));
  };
}

// Each part of a chain calls the one before it.
constexpr int kLongest = 1000;

Expression postfix(Reader& r, Expression x) {
  for (int n = 0;; ++n) {
    if (n > kLongest) throw r.unsupported("an expression this long");
    if (r.takes_op("."))
      x = member(r, std::move(x));
    else if (r.takes_op("["))
      x = subscript(r, std::move(x));
    else if (r.takes_op("("))
      x = [f = std::move(x), call = arguments(r)](Scope& s) { return called(f(s), call(s)); };
    else
      return x;
  }
}

Expression filtered(Reader& r, Expression x) {
  std::string name = r.expect_name();
  if (!is_filter(name)) throw r.unsupported(fmt::format("the filter '{}'", name));
  Call call = r.takes_op("(") ? arguments(r) : Call();
  return [x = std::move(x), name = std::move(name), call = std::move(call)](Scope& s) {
    return call_filter(name, x(s), call(s));
  };
}

Expression tested(Reader& r, Expression x) {
  const bool holds = !r.takes_name("not");
  std::string name = r.expect_name();
  if (!is_test(name)) throw r.unsupported(fmt::format("the test '{}'", name));
  Call call;
  const auto& t = r.now();
  const bool word = t.kind == Kind::name && t.text != "else" && t.text != "or" && t.text != "and" &&
                    t.text != "is" && t.text != "if" && t.text != "not" && t.text != "in";
  if (r.takes_op("("))
    call = arguments(r);
  else if (word || t.kind == Kind::string || t.kind == Kind::integer || t.kind == Kind::real ||
           r.is_op("[") || r.is_op("{"))
    call.positional.push_back(postfix(r, primary(r)));
  return [x = std::move(x), holds, name = std::move(name), call = std::move(call)](Scope& s) -> Value {
    return call_test(name, x(s), call(s)) == holds;
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
  for (int n = 0; with_filters; ++n) {
    if (n > kLongest) throw r.unsupported("an expression this long");
    if (r.takes_op("|"))
      x = filtered(r, std::move(x));
    else if (r.takes_name("is"))
      x = tested(r, std::move(x));
    else
      break;
  }
  return x;
}

/// Operators of one rank, from left to right.
template <class Next>
Expression chain(Reader& r, std::initializer_list<std::string_view> ops, Next next) {
  Expression x = next(r);
  for (int n = 0;; ++n) {
    if (n > kLongest) throw r.unsupported("an expression this long");
    std::string_view found;
    for (const auto op : ops)
      if (r.is_op(op)) found = op;
    if (found.empty()) return x;
    r.take();
    x = [op = std::string(found), a = std::move(x), b = next(r)](Scope& s) {
      const Value left = a(s);
      return binary(op, left, b(s));
    };
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
  while (r.takes_name("if")) {
    Expression condition = disjunction(r), other = constant(Undefined{"the other side of an if"});
    if (r.takes_name("else")) other = expression(r);
    x = [x = std::move(x), condition = std::move(condition), other = std::move(other)](Scope& s) {
      return condition(s).truth() ? x(s) : other(s);
    };
  }
  return x;
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
