#include <chrono>
#include <sstream>

#include "cli/show.h"
#include "cli/text/language.h"
#include "cli/text/reading.h"
#include "formats/file.h"
#include "weft/policy_scope.h"

// weft generate: text that a model makes up.
namespace weft::cli {
namespace {

struct Options {
  TextOptions text;
  std::vector<std::string> prompts;
  std::string prompts_file;
};

// Texts one after the other, each as it comes once those before it have ended.
class Printer {
 public:
  Printer(const std::vector<std::string>& prompts, bool quiet)
      : prompts_(prompts), quiet_(quiet), texts_(prompts.size()) {
    begin();
  }
  void show(const nn::Generation& g) {
    for (size_t i = 0; i < texts_.size(); ++i) {
      const auto part = g.text(static_cast<int64_t>(i));
      texts_[i] += part;
      if (i == now_) print(part);
    }
    while (now_ < texts_.size() && g.finish(static_cast<int64_t>(now_)) != nn::Finish::none) {
      print("\n");
      ++now_;
      begin();
      if (now_ < texts_.size()) print(texts_[now_]);
    }
  }
  const std::string& text(size_t i) const { return texts_[i]; }

 private:
  void begin() {
    if (now_ < prompts_.size()) print(prompts_[now_]);
  }
  // At once, also into a pipe.
  void print(std::string_view text) const {
    if (quiet_ || text.empty()) return;
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  const std::vector<std::string>& prompts_;
  bool quiet_;
  std::vector<std::string> texts_;
  size_t now_ = 0;  // whose turn it is
};

std::vector<std::vector<int32_t>> encoded(const Language& language, const std::vector<std::string>& prompts) {
  std::vector<std::vector<int32_t>> all;
  for (const auto& p : prompts) {
    all.push_back(language.tokenizer.encode(p));
    if (const auto words = unknown_in(all.back(), language.tokenizer); !words.empty())
      note(fmt::format("prompt {}: {}", all.size(), words));
    if (all.back().empty()) all.back() = language.begin;
  }
  return all;
}

/// The tokens of the longest prompt.
size_t longest(const nn::LanguageModel& model, const std::vector<std::vector<int32_t>>& prompts) {
  size_t most = 1;
  for (size_t i = 0; i < prompts.size(); ++i) {
    most = std::max(most, prompts[i].size());
    if (prompts[i].size() > static_cast<uint64_t>(model.context()))
      throw Error(invalid("prompt {} has {} tokens, the model's context is {}; give a shorter one", i + 1,
                          prompts[i].size(), model.context()));
  }
  return most;
}

// Which texts went on without their beginnings: said behind them, not between two of their words.
void say_what_was_forgotten(const nn::Generation& g, size_t texts, int64_t context) {
  for (size_t i = 0; i < texts; ++i)
    if (const int64_t n = g.forgotten(static_cast<int64_t>(i)); n > 0)
      note(fmt::format(
          "text {} outgrew the model's context of {}: its end was made without its first {} tokens", i + 1,
          context, n));
}

int run_language(const Options& o, Language language, const std::vector<std::string>& prompts, bool as_json) {
  const auto ids = encoded(language, prompts);
  const size_t most = longest(*language.model, ids);
  const nn::GenerateOptions options = generate_options(o.text, language, most);
  const auto room = std::min<uint64_t>(static_cast<uint64_t>(language.model->context()),
                                       most + static_cast<uint64_t>(options.length));
  nn::Decoder decoder(*language.model,
                      {.batch = static_cast<int64_t>(prompts.size()),
                       .capacity = static_cast<int64_t>(room),
                       .compile = {.name = "decoder", .policy = current_policy(), .take_captured = true}});
  const int64_t context = language.model->context();
  language.model.reset();  // the decoder has its weights
  const auto start = Clock::now();
  nn::Generation g(decoder, language.tokenizer, ids, options);
  const double reading = seconds_since(start);
  const auto begin = Clock::now();
  Printer printer(prompts, as_json);
  while (g.step()) printer.show(g);
  const double writing = seconds_since(begin);
  int64_t made = 0;
  for (size_t i = 0; i < prompts.size(); ++i)
    made += static_cast<int64_t>(g.tokens(static_cast<int64_t>(i)).size());
  say_what_was_forgotten(g, prompts.size(), context);
  const double in = rate(g.prompt_tokens(), reading), out = rate(made, writing);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    if (as_json)
      fmt::print("{}\n", line_of({{"prompt", prompts[i]},
                                  {"text", printer.text(i)},
                                  {"finish", nn::name(g.finish(row))},
                                  {"prompt_tokens", ids[i].size()},
                                  {"output_tokens", g.tokens(row).size()},
                                  {"backend", default_backend()},
                                  {"prompt_tokens_per_second", in},
                                  {"output_tokens_per_second", out}}));
  }
  if (!as_json)
    fmt::print(stderr, "weft: prompt {} tokens, {:.1f} tokens/s; output {} tokens, {:.1f} tokens/s\n",
               g.prompt_tokens(), in, made, out);
  return 0;
}

std::vector<std::string> all_prompts(const Options& o) {
  std::vector<std::string> all = o.prompts;
  if (!o.prompts_file.empty()) {
    const auto bytes = value_or_raise(formats::read_file(o.prompts_file));
    std::istringstream file({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    for (std::string text; std::getline(file, text);) {
      if (text.ends_with('\r')) text.pop_back();
      if (!text.empty()) all.push_back(text);
    }
    if (all.empty()) throw Error(invalid("{} has no line to begin a text with", o.prompts_file));
  }
  if (all.empty()) all.emplace_back();
  return all;
}

int run(const Options& o, const Common& common) {
  const auto prompts = all_prompts(o);
  return run_language(o, load_language(o.text), prompts, common.json);
}

std::function<int()> setup(Syntax& app, const Common& common) {
  const auto o = std::make_shared<Options>();
  o->text.generate.sampling.temperature = 0.8;
  o->text.generate.forget = true;
  add_text_options(app, o->text);
  app.add_option("--prompt", o->prompts, "prompt to continue; several are generated as a batch")
      .type_name("TEXT")
      .one_at_a_time();
  app.add_option("--prompts-file", o->prompts_file, "a prompt a line").type_name("FILE");
  return [o, &common] { return run(*o, common); };
}

}  // namespace

extern const Command generate_command = {"generate", "generate text with a trained model", setup};

}  // namespace weft::cli
