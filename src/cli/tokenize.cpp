#include "base/output_file.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/show.h"
#include "cli/text/reading.h"

// weft tokenize: text as a token file, which training maps instead of reading.
namespace weft::cli {
namespace {

struct Options {
  std::vector<std::string> data;
  std::string out;
  TokenizerOptions tokenizer = {.tokenizer = "bpe", .vocabulary = 8192};
};

int run(Options o, const Common& common) {
  o.out = output_path(o.out);
  for (const auto& path : o.data) refuse_to_overwrite(o.out, "--data", path);
  for (const auto& path : o.data)
    if (path != "-" && io::Tokens::is_token_file(path))
      throw Error(invalid("{} is a token file already; give text", path));
  const auto text = read_text(o.data, o.tokenizer);
  for (const auto& file : text.files) refuse_to_overwrite(o.out, "--data", file);
  for (const auto& file : {o.tokenizer.tokenizer, o.tokenizer.tokenizer + "/tokenizer.json"})
    refuse_to_overwrite(o.out, "--tokenizer", file);
  text.tokens.save(o.out);
  Show show(common.json);
  for (const auto& words : text.notes) note(words);
  if (is_standard_output(o.out)) return 0;
  const auto tokens = static_cast<int64_t>(text.tokens.ids().size());
  const auto vocabulary = text.tokens.tokenizer().size();
  show.result({{"file", o.out}, {"tokens", tokens}, {"vocabulary", vocabulary}, {"files", text.files.size()}},
              fmt::format("{} tokens of {}, {} kinds, in {}", grouped(tokens),
                          counted(text.files.size(), "file"), vocabulary, o.out));
  return 0;
}

}  // namespace

extern const Command tokenize_command = {
    "tokenize", "tokenize text into a file to train on",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      app.add_option("--data", o->data,
                     "text files, folders of them (each file ends with a newline), or - for standard input")
          .required()
          .type_name("PATH");
      app.add_option("--out", o->out, "the token file to write")
          .required()
          .check(some_name)
          .type_name("FILE");
      add_tokenizer_options(app, o->tokenizer);
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
