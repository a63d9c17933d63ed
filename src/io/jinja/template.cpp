#include "io/jinja/template.h"

#include <algorithm>
#include <ctime>

#include "io/jinja/parser.h"

// Statements, and the names that every template has.
namespace weft::io::jinja {
namespace {

using Kind = Token::Kind;
constexpr int64_t kLongestRange = 1'000'000;

Flow run_all(const std::vector<Statement>& all, Scope& s) {
  for (const auto& statement : all)
    if (const Flow flow = statement(s); flow != Flow::next) return flow;
  return Flow::next;
}
// The output of statements as a string.
std::string captured(const std::vector<Statement>& body, Scope& s) {
  const Run::Capture capture(s.run);
  run_all(body, s);
  return capture.text();
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : r_(std::move(tokens)) {}
  std::vector<Statement> run() {
    auto all = body({});
    if (r_.now().kind != Kind::end) throw r_.wanted("the end");
    return all;
  }

 private:
  using Body = std::vector<Statement>;

  // Statements up to a tag that begins with one of `ends`; that tag's name is not taken.
  Body body(std::initializer_list<std::string_view> ends) {
    const Reader::Deeper deeper(r_);
    Body all;
    for (;;) {
      const Token t = r_.now();
      if (t.kind == Kind::end) {
        if (ends.size() == 0) return all;
        throw r_.wanted(fmt::format("'{}'", *(ends.end() - 1)));
      }
      r_.take();
      if (t.kind == Kind::data) {
        all.push_back([text = t.text](Scope& s) {
          s.run.step();
          s.run.write(text);
          return Flow::next;
        });
      } else if (t.kind == Kind::begin_print) {
        Expression e = expressions(r_);
        r_.expect(Kind::end_print, "'}}'");
        all.push_back(at_line(t.line, [e = std::move(e)](Scope& s) {
          s.run.write(e(s).text());
          return Flow::next;
        }));
      } else {
        for (const auto end : ends)
          if (r_.is_name(end)) return all;
        all.push_back(at_line(t.line, statement()));
      }
    }
  }

  // Errors name the line.
  static Statement at_line(int line, Statement f) {
    return [line, f = std::move(f)](Scope& s) {
      s.run.step();
      try {
        return f(s);
      } catch (const Error& e) {
        const std::string_view what = e.status().message();
        if (what.starts_with("chat template")) throw;
        throw Error(Status(e.status().code(), fmt::format("chat template, line {}: {}", line, what)));
      }
    };
  }

  void close() { r_.expect(Kind::end_block, "'%}'"); }
  // Parses `{% name %}`, after its beginning.
  void end(std::string_view name) {
    if (!r_.takes_name(name)) throw r_.wanted(fmt::format("'{}'", name));
    close();
  }

  Statement statement() {
    const std::string name = r_.expect_name();
    if (name == "if") return condition();
    if (name == "for") return loop();
    if (name == "set") return assignment();
    if (name == "macro") return macro();
    if (name == "generation") {  // marks the assistant's text, for training
      close();
      return inside(body({"endgeneration"}), "endgeneration");
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) throw r_.unsupported(fmt::format("'{}' outside of a loop", name));
      close();
      return [flow = name == "break" ? Flow::leave_loop : Flow::next_round](Scope&) { return flow; };
    }
    throw r_.unsupported(fmt::format("'{{% {} %}}'", name));
  }

  Statement inside(Body all, std::string_view closing) {
    end(closing);
    return [all = std::move(all)](Scope& s) { return run_all(all, s); };
  }

  Statement condition() {
    std::vector<std::pair<Expression, Body>> cases;
    Body other;
    do {
      Expression e = expression(r_);
      close();
      cases.emplace_back(std::move(e), body({"elif", "else", "endif"}));
    } while (r_.takes_name("elif"));
    if (r_.takes_name("else")) {
      close();
      other = body({"endif"});
    }
    end("endif");
    return [cases = std::move(cases), other = std::move(other)](Scope& s) {
      for (const auto& [e, then] : cases)
        if (e(s).truth()) return run_all(then, s);
      return run_all(other, s);
    };
  }

  std::vector<std::string> targets() {
    std::vector<std::string> names = {r_.expect_name()};
    while (r_.takes_op(",")) names.push_back(r_.expect_name());
    return names;
  }
  static void bind(Scope& s, const std::vector<std::string>& names, const Value& v) {
    if (names.size() == 1) return s.set(names[0], v);
    const List parts = elements(v);
    if (parts.size() != names.size())
      throw Error(invalid("{} names for {} values", names.size(), parts.size()));
    for (size_t i = 0; i < names.size(); ++i) s.set(names[i], parts[i]);
  }

  static Dict loop_of(const List& all, size_t i) {
    const auto n = static_cast<int64_t>(all.size()), at = static_cast<int64_t>(i);
    Dict d;
    d.items = {{"index", at + 1}, {"index0", at},     {"revindex", n - at}, {"revindex0", n - at - 1},
               {"length", n},     {"first", at == 0}, {"last", at + 1 == n}};
    d.items.emplace_back("previtem", i > 0 ? all[i - 1] : Value(Undefined{"loop.previtem"}));
    d.items.emplace_back("nextitem", i + 1 < all.size() ? all[i + 1] : Value(Undefined{"loop.nextitem"}));
    return d;
  }

  Statement loop() {
    const auto names = targets();
    if (!r_.takes_name("in")) throw r_.wanted("'in'");
    Expression all = disjunction(r_), only;
    if (r_.takes_name("if")) only = expression(r_);
    if (r_.is_name("recursive")) throw r_.unsupported("a recursive loop");
    close();
    ++loops_;
    Body round = body({"else", "endfor"}), none;
    --loops_;
    if (r_.takes_name("else")) {
      close();
      none = body({"endfor"});
    }
    end("endfor");
    return [=](Scope& s) {
      List chosen;
      for (const Value& v : elements(all(s))) {
        Scope inner{s.run, &s, {}};
        if (only) s.run.step(), bind(inner, names, v);
        if (!only || only(inner).truth()) chosen.push_back(v);
      }
      const Value counted = std::move(chosen);
      const List& list = counted.list();
      for (size_t i = 0; i < list.size(); ++i) {
        Scope inner{s.run, &s, {{"loop", loop_of(list, i)}}};
        bind(inner, names, list[i]);
        s.run.step();
        if (run_all(round, inner) == Flow::leave_loop) break;
      }
      return list.empty() ? run_all(none, s) : Flow::next;
    };
  }

  Statement assignment() {
    auto names = targets();
    std::string member;
    if (names.size() == 1 && r_.takes_op(".")) member = r_.expect_name();
    const auto put = [names = std::move(names), member](Scope& s, const Value& v) {
      if (member.empty()) return bind(s, names, v);
      const Value object = s.get(names[0]);
      if (!object.is_dict() || !object.dict().is_namespace)
        throw Error(invalid("'{}' is no namespace: its '{}' can't be set", names[0], member));
      object.set_member(member, v);
    };
    if (r_.takes_op("=")) {
      Expression e = expressions(r_);
      close();
      return [put, e = std::move(e)](Scope& s) {
        put(s, e(s));
        return Flow::next;
      };
    }
    if (r_.is_op("|")) throw r_.unsupported("a filter of a block");
    close();
    Body text = body({"endset"});
    end("endset");
    return [put, text = std::move(text)](Scope& s) {
      Scope inner{s.run, &s, {}};
      put(s, captured(text, inner));
      return Flow::next;
    };
  }

  struct Macro {
    struct Parameter {
      std::string name;
      Expression otherwise;
    };
    std::string name;
    std::vector<Parameter> parameters;
    Body body;
    int depth = 0;

    Value operator()(Scope& root, const Arguments& a) const {
      const Run::Inside inside(root.run, depth);
      Scope inner{root.run, &root, {}};
      for (const auto& [given, value] : a.named)
        if (std::ranges::find(parameters, given, &Parameter::name) == parameters.end())
          throw Error(invalid("the macro '{}' has no parameter '{}'", name, given));
      a.expect_count(name, parameters.size());
      for (size_t i = 0; i < parameters.size(); ++i) {
        const auto& p = parameters[i];
        const Value* given = a.get(i, p.name);
        inner.set(p.name, given ? *given : p.otherwise ? p.otherwise(inner) : Value(Undefined{p.name}));
      }
      return captured(body, inner);
    }
  };

  Statement macro() {
    const auto macro = std::make_shared<Macro>();
    macro->name = r_.expect_name();
    r_.expect_op("(");
    macro->depth = 1 + r_.depth_of([&] {
      while (!r_.takes_op(")")) {
        macro->parameters.push_back({r_.expect_name(), {}});
        if (r_.takes_op("=")) macro->parameters.back().otherwise = expression(r_);
        if (!r_.is_op(")")) r_.expect_op(",");
      }
      close();
      const int outside = std::exchange(loops_, 0);
      macro->body = body({"endmacro"});
      loops_ = outside;
    });
    end("endmacro");
    return [macro = std::shared_ptr<const Macro>(macro)](Scope& s) {
      Scope* root = &s;
      while (root->outer) root = root->outer;
      s.set(macro->name, Function([macro, root](const Arguments& a) { return (*macro)(*root, a); }));
      return Flow::next;
    };
  }

  Reader r_;
  int loops_ = 0;
};

// ---- predefined names

Value make_namespace(const Arguments& a) {
  Dict d;
  for (const Value& v : a.positional)
    if (v.is_dict())
      for (const auto& [name, value] : v.dict().items) d.set(name, value);
  for (const auto& [name, value] : a.named) d.set(name, value);
  d.is_namespace = true;
  return d;
}
Value range(const Arguments& a) {
  a.expect("range", 3);
  if (a.positional.empty()) throw Error(invalid("range wants a number"));
  const bool one = a.positional.size() == 1;
  const int64_t first = one ? 0 : a.positional[0].integer(), last = a.positional[one ? 0 : 1].integer(),
                step = a.positional.size() == 3 ? a.positional[2].integer() : 1;
  if (step == 0) throw Error(invalid("the step of a range must not be 0"));
  List all;
  for (int64_t i = first; step > 0 ? i < last : i > last;) {
    if (static_cast<int64_t>(all.size()) == kLongestRange)
      throw Error(fail(Code::unsupported, "a range of more than {} numbers", kLongestRange));
    all.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return all;
}

Value raise(const Arguments& a) {
  throw Error(invalid("chat template refuses: {}", a.positional.empty() ? "" : a.positional[0].text()));
}

Value now(const Arguments& a) {
  a.expect("strftime_now", 1);
  const std::string format = a.positional.empty() ? "" : a.positional[0].text();
  const std::time_t t = std::time(nullptr);
  std::tm local{};
  localtime_r(&t, &local);
  char text[256];
  return std::string(text, std::strftime(text, sizeof text, format.c_str(), &local));
}

}  // namespace

struct Template::Body {
  std::vector<Statement> all;
};

Template::Template(std::string_view source)
    : body_(std::make_unique<Body>(Parser(tokens_of(source)).run())) {}
Template::~Template() = default;

std::string Template::render(std::vector<std::pair<std::string, Value>> variables) const {
  const Meter meter;
  Run run;
  Scope globals{run, nullptr, std::move(variables)};
  globals.names.emplace_back("namespace", Function(make_namespace));
  globals.names.emplace_back("range", Function(range));
  globals.names.emplace_back("raise_exception", Function(raise));
  globals.names.emplace_back("strftime_now", Function(now));
  run_all(body_->all, globals);
  return run.take_text();
}

}  // namespace weft::io::jinja
