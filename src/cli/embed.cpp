#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/show.h"
#include "cli/text/sentences.h"
#include "compiler/compile.h"
#include "runtime/devices.h"
#include "weft/policy_scope.h"

// weft embed: texts as vectors, and which are alike.
namespace weft::cli {
namespace {

struct Options {
  std::string program, tokenizer, file;
  std::vector<std::string> texts;
  int64_t batch = 32, nearest = 5;
};

struct Alike {
  size_t text;
  double cosine;
};

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double both = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return both / std::max(std::sqrt(aa) * std::sqrt(bb), 1e-12);
}

// The other texts, the most alike first.
std::vector<Alike> nearest_to(size_t i, const std::vector<Sentence>& all, int64_t most) {
  std::vector<Alike> out;
  for (size_t k = 0; k < all.size(); ++k)
    if (k != i) out.push_back({k, cosine(all[i].vector, all[k].vector)});
  std::ranges::stable_sort(out, std::ranges::greater(), &Alike::cosine);
  out.resize(std::min(out.size(), static_cast<size_t>(most)));
  return out;
}

void print_json(const std::string& text, const Sentence& s, const std::vector<Alike>& nearest,
                const std::string& backend) {
  Json others = Json::list();
  for (const auto& n : nearest) others.push_back({{"text", n.text + 1}, {"cosine", n.cosine}});
  fmt::print("{}\n", line_of({{"text", text},
                              {"tokens", s.tokens},
                              {"cut", s.cut},
                              {"backend", backend},
                              {"nearest", others},
                              {"vector", s.vector}}));
}

void print(size_t i, const std::string& text, const Sentence& s, const std::vector<Alike>& nearest) {
  std::string numbers, others;
  for (size_t k = 0; k < std::min<size_t>(4, s.vector.size()); ++k)
    numbers += fmt::format("{:.4f} ", s.vector[k]);
  for (const auto& n : nearest)
    others += fmt::format("{}{} ({:.4f})", others.empty() ? "" : ", ", n.text + 1, n.cosine);
  fmt::print("{}: {}\n   {} of {} tokens: {}...\n", i + 1, text, counted(s.vector.size(), "number"), s.tokens,
             numbers);
  if (!others.empty()) fmt::print("   most alike: {}\n", others);
}

int run(Options o, const Common& common) {
  if (!o.file.empty())
    for (auto& line : lines_of_file(o.file)) o.texts.push_back(std::move(line));
  if (o.texts.empty() && !o.file.empty()) throw Error(invalid("{} has no line with a text", o.file));
  if (o.texts.empty()) throw UsageError(invalid("give a text, or --texts-file"));
  if (o.tokenizer.empty()) o.tokenizer = std::filesystem::path(o.program).parent_path().string();
  if (o.tokenizer.empty()) o.tokenizer = ".";
  const bool is_folder = std::filesystem::is_directory(o.tokenizer);
  const auto config = is_folder ? value_or_raise(read_sentence_config(o.tokenizer)) : SentenceConfig();
  auto p = std::make_shared<const program::CompiledProgram>(value_or_raise(compiler::read_file(o.program)));
  auto devices = value_or_raise(runtime::devices_for(common.backend, current_policy()));
  auto session = value_or_raise(runtime::Session::create(std::move(p), std::move(devices), current_policy()));
  const std::string backend = session->backend();
  auto embedder =
      value_or_raise(Embedder::make(std::move(session), io::Tokenizer::load(o.tokenizer), config));
  const auto sentences = value_or_raise(embedder(o.texts, o.batch));
  for (size_t i = 0; i < sentences.size(); ++i)
    if (sentences[i].cut)
      note(fmt::format("text {} is longer than the model takes: cut to {} tokens", i + 1,
                       sentences[i].tokens));
  for (size_t i = 0; i < sentences.size(); ++i) {
    const auto nearest = nearest_to(i, sentences, o.nearest);
    if (common.json)
      print_json(o.texts[i], sentences[i], nearest, backend);
    else
      print(i, o.texts[i], sentences[i], nearest);
  }
  return 0;
}

}  // namespace

extern const Command embed_command = {
    "embed", "turn texts into vectors, and say which are alike",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      app.add_option("program", o->program, "a text encoder's program file, as weft compile writes it")
          .required()
          .type_name("FILE");
      app.add_option("texts", o->texts, "the texts").type_name("TEXT");
      app.add_option("--texts-file", o->file, "a text a line; empty lines are left out").type_name("FILE");
      app.add_option(
             "--tokenizer", o->tokenizer,
             "the model's folder, as sentence-transformers writes it, or a tokenizer.json; without it, "
             "the folder of the program")
          .type_name("DIR");
      app.add_option("--batch", o->batch, "texts at a time").range(1, 65536).capture_default_str();
      app.add_option("--nearest", o->nearest, "how many of the other texts are named as alike")
          .range(0, 1'000'000)
          .capture_default_str();
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
