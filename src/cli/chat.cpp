#include "weft/chat.h"

#include <unistd.h>

#include <csignal>

#include "cli/show.h"
#include "cli/text/language.h"
#include "weft/policy_scope.h"

// weft chat: a conversation with a chat model.
namespace weft::cli {
namespace {

struct Options {
  TextOptions text;
  std::string system;
  int64_t context = 4096;
  std::vector<std::string> variables;
};

volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int) { interrupted = 1; }

// A blocked read of a line must return, so the handler does not restart it.
void listen_for_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
}

/// What the user says, line by line.
class Lines {
 public:
  Lines() : asks_(::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO)) {}
  ~Lines() { std::free(line_); }
  Lines(const Lines&) = delete;

  /// False at the end.
  bool next(std::string& text) {
    for (;;) {
      if (asks_) fmt::print("> "), std::fflush(stdout);
      interrupted = 0;
      errno = 0;
      const ssize_t n = ::getline(&line_, &size_, stdin);
      if (n >= 0) {
        text.assign(line_, static_cast<size_t>(n));
        while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
        if (!text.empty()) return true;
      } else if (interrupted && errno == EINTR) {
        std::clearerr(stdin);
        if (asks_) fmt::print("\n(Ctrl-D ends)\n");
      } else {
        if (asks_) fmt::print("\n");
        return false;
      }
    }
  }

 private:
  bool asks_;
  char* line_ = nullptr;
  size_t size_ = 0;
};

class Chat {
 public:
  Chat(const Options& o, const Language& language, bool as_json)
      : tokenizer_(language.tokenizer),
        template_(language.tokenizer),
        decoder_(*language.model,
                 {.capacity = std::min(o.context, language.model->context()),
                  .compile = {.name = "decoder", .policy = current_policy(), .take_captured = true}}),
        language_(language),
        text_(o.text),
        json_(as_json) {
    for (const auto& v : o.variables) {
      const size_t at = v.find('=');
      if (at == v.npos || at == 0) throw Error(invalid("--set wants NAME=VALUE, got '{}'", v));
      chat_.variables.emplace_back(v.substr(0, at), v.substr(at + 1));
    }
    if (!o.system.empty()) messages_.push_back({"system", o.system});
  }

  /// False if the context is full.
  bool answer(const std::string& said) {
    messages_.push_back({"user", said});
    const std::vector<int32_t> ids = template_.encode(messages_, chat_);
    if (static_cast<int64_t>(ids.size()) >= decoder_.capacity()) {
      note(fmt::format("the conversation has {} tokens now, there is room for {}: it ends here", ids.size(),
                       decoder_.capacity()));
      return false;
    }
    interrupted = 0;
    const auto start = Clock::now();
    nn::Generation g(decoder_, tokenizer_, {&ids, 1}, generate_options(text_, language_, ids.size()));
    const double reading = seconds_since(start);
    const auto begin = Clock::now();
    std::string text;
    while (!interrupted && g.step()) {
      text += g.text(0);
      if (!json_) fmt::print("{}", g.text(0)), std::fflush(stdout);
    }
    const double writing = seconds_since(begin);
    messages_.push_back({"assistant", text});
    text_.generate.sampling.seed += 1;  // so the same question may get another answer
    const double in = rate(g.prompt_tokens(), reading),
                 out = rate(static_cast<int64_t>(g.tokens(0).size()), writing);
    report(text, g, in, out);
    if (g.finish(0) != nn::Finish::full) return true;
    note(fmt::format("the model's room of {} tokens is full: the conversation ends here",
                     decoder_.capacity()));
    return false;
  }

 private:
  void report(const std::string& text, const nn::Generation& g, double in, double out) const {
    const char* finish = interrupted ? "interrupted" : nn::name(g.finish(0));
    if (json_) {
      const Json line = {{"role", "assistant"},
                         {"content", text},
                         {"finish", finish},
                         {"prompt_tokens", g.prompt_tokens()},
                         {"output_tokens", g.tokens(0).size()},
                         {"prompt_tokens_per_second", in},
                         {"output_tokens_per_second", out}};
      fmt::print("{}\n", line_of(line));
      std::fflush(stdout);
      return;
    }
    fmt::print("\n");
    std::fflush(stdout);
    fmt::print(stderr, "[read {} tokens, {:.1f} tokens/s; made {}, {:.1f} tokens/s{}]\n", g.prompt_tokens(),
               in, g.tokens(0).size(), out, interrupted ? "; interrupted" : "");
  }

  io::Tokenizer tokenizer_;
  io::ChatTemplate template_;
  nn::Decoder decoder_;
  const Language& language_;
  TextOptions text_;
  io::ChatOptions chat_;
  std::vector<io::ChatMessage> messages_;
  bool json_;
};

int run(const Options& o, const Common& common) {
  Language language = load_language(o.text);
  Chat chat(o, language, common.json);
  language.model.reset();  // the decoder has its weights
  listen_for_interrupts();
  Lines lines;
  for (std::string said; lines.next(said);)
    if (!chat.answer(said)) return 1;
  return 0;
}

std::function<int()> setup(Syntax& app, const Common& common) {
  const auto o = std::make_shared<Options>();
  o->text.generate.length = 1024;
  o->text.generate.sampling.temperature = 0.7;
  add_text_options(app, o->text);
  app.add_option("--system", o->system, "the system message").type_name("TEXT");
  app.add_option("--context", o->context, "tokens of context to allocate, at most the model's")
      .check(whole_number<int64_t>(2))
      .capture_default_str();
  app.add_option("--set", o->variables, "a variable of the chat template, as in enable_thinking=false")
      .type_name("NAME=VALUE")
      .one_at_a_time();
  return [o, &common] { return run(*o, common); };
}

}  // namespace

extern const Command chat_command = {"chat", "talk with a model", setup};

}  // namespace weft::cli
