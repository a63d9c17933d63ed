#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "python/src/made.h"
#include "python/src/module.h"
#include "python/src/object.h"
#include "weft/chat.h"
#include "weft/data.h"
#include "weft/text.h"
#include "weft/trainer.h"

// Texts: files, tokenizers, training data, chat templates.
namespace weft::python {
namespace {

using namespace nb::literals;

void bind_tokenizer(nb::module_& m) {
  using io::Tokenizer;
  nb::class_<Tokenizer>(m, "Tokenizer",
                        "A tokenizer of bytes, of characters, by byte-pair encoding or by WordPiece; the "
                        "format of its files is tokenizer.json.")
      .def_static("bytes", &Tokenizer::bytes, "256 ids, those of the bytes.")
      .def_static(
          "train_characters",
          [](std::string_view text, size_t limit, size_t least) {
            return Tokenizer::train_characters(text, {limit, least});
          },
          "text"_a, "limit"_a = 4096, "least"_a = 2,
          "One id for each character of `text`, in order of code point; 0 is what all others become.")
      .def_static(
          "train_bpe",
          [](std::string_view text, int64_t size, std::vector<std::string> specials, int64_t least) {
            const Unlocked released;
            return Tokenizer::train_bpe(text, {size, std::move(specials), least});
          },
          "text"_a, "vocabulary_size"_a = 8192, "specials"_a = std::vector<std::string>{"<|endoftext|>"},
          "least"_a = 2, "Byte-pair encoding of bytes, trained on `text`.")
      .def_static(
          "load", [](const std::filesystem::path& path) { return Tokenizer::load(path.string()); }, "path"_a,
          "From a tokenizer.json, or a folder with one.")
      .def(
          "save", [](const Tokenizer& t, const std::filesystem::path& path) { t.save(path.string()); },
          "path"_a, "Writes tokenizer.json, whole or not at all.")
      .def(
          "encode",
          [](const Tokenizer& t, std::string_view text, bool add, bool read, int64_t most) {
            return t.encode(text, add, read, most);
          },
          "text"_a, "add_specials"_a = true, "read_specials"_a = true, "most"_a = INT64_MAX,
          "The ids of `text`. `read_specials`: special tokens that are written out in it are recognised.")
      .def(
          "decode",
          [](const Tokenizer& t, const std::vector<int32_t>& ids, bool skip) {
            const auto size = static_cast<int64_t>(t.size());
            for (const int32_t id : ids)
              if (id < 0 || id >= size)
                throw Error(invalid("decode: {} is no id of this tokenizer: they are in [0, {})", id, size));
            return text_of(t.decode(ids, skip));
          },
          "ids"_a, "skip_specials"_a = true,
          nb::sig("def decode(self, ids: Sequence[int], skip_specials: bool = True) -> str"),
          "The text of ids.\n\nErrors   weft.InvalidArgument for an id outside [0, size).")
      .def(
          "id", [](const Tokenizer& t, std::string_view token) { return t.id(token); }, "token"_a,
          "The id of a token as the file spells it, or None.")
      .def("token", &Tokenizer::token, "id"_a, "The token of an id.")
      .def("__len__", &Tokenizer::size)
      .def("__repr__",
           [](const Tokenizer& t) { return fmt::format("<weft.nn.Tokenizer of {} ids>", t.size()); })
      .def_prop_ro("size", &Tokenizer::size, "One more than the largest id.")
      .def_prop_ro("bos", &Tokenizer::bos, "The id that begins a text, or None.")
      .def_prop_ro("eos", &Tokenizer::eos, "The id that ends one.")
      .def_prop_ro("chat_template", &Tokenizer::chat_template, "The chat template, or an empty text.");
}

void bind_data(nb::module_& m) {
  nb::class_<io::Tokens>(m, "Tokens", "A text as ids, and the tokenizer that made them.")
      .def(nb::init<std::vector<int32_t>, io::Tokenizer>(), "ids"_a, "tokenizer"_a)
      .def_static("map", &io::Tokens::map, "path"_a, "A memory-mapped token file: pages are read on demand.")
      .def("save", &io::Tokens::save, "path"_a, "Writes a token file atomically.")
      .def_prop_ro("tokenizer", &io::Tokens::tokenizer, "What made the ids.")
      .def("__len__", [](const io::Tokens& t) { return t.ids().size(); });
  nb::class_<io::TokenData>(m, "TokenData",
                            "Training and validation rows of a text. Batch number n is a function of seed "
                            "and n, and there is no other state to keep.")
      .def(nb::init<io::Tokens, int64_t, uint64_t>(), "tokens"_a, "context"_a, "seed"_a = 1)
      .def(
          "__init__",
          [](io::TokenData* d, const std::string& text, const io::Tokenizer& tokenizer, int64_t context,
             uint64_t seed) { new (d) io::TokenData({tokenizer.encode(text), tokenizer}, context, seed); },
          "text"_a, "tokenizer"_a, "context"_a, "seed"_a = 1)
      .def(
          "train",
          [](const io::TokenData& d, uint64_t number, int64_t rows) {
            return nn::example_of(d.train(number, rows));
          },
          "number"_a, "rows"_a,
          "Batch `number`: tokens and the tokens that follow them, i32 [rows, context].")
      .def(
          "validation",
          [](const io::TokenData& d, uint64_t number, int64_t rows) {
            return nn::example_of(d.validation(number, rows));
          },
          "number"_a, "rows"_a, "The same rows each time, spread evenly over the validation part.")
      .def_prop_ro("context", &io::TokenData::context, "Tokens in a row.")
      .def_prop_ro("tokenizer", &io::TokenData::tokenizer, "What made the ids.")
      .def_prop_ro("train_rows", &io::TokenData::train_rows, "Rows of an epoch.")
      .def_prop_ro("validation_rows", &io::TokenData::validation_rows, "Rows of the validation part.");
  m.def(
      "load_text", [](const std::vector<std::string>& paths) { return text_of(io::load_text(paths).utf8); },
      "paths"_a, nb::sig("def load_text(paths: Sequence[str]) -> str"),
      "Reads files, and every text file in folders and below, in order of path.");
}

void bind_chat(nb::module_& m) {
  nb::class_<io::ChatTemplate>(m, "ChatTemplate", "The chat template of a tokenizer.")
      .def(nb::init<io::Tokenizer>(), "tokenizer"_a)
      .def(
          "encode",
          [](const io::ChatTemplate& t, const std::vector<std::pair<std::string, std::string>>& messages,
             bool prompt) {
            std::vector<io::ChatMessage> all;
            for (const auto& [role, content] : messages) all.push_back({role, content});
            return t.encode(all, {.add_generation_prompt = prompt, .variables = {}});
          },
          "messages"_a, "add_generation_prompt"_a = true,
          "The tokens of a conversation: pairs of a role and what it says.");
}

}  // namespace

void bind_text(nb::module_& m) {
  nb::class_<nn::Example>(m, "Example", "What a model is given, and what it should have said.")
      .def(
          "__init__",
          [](nn::Example* e, const Tensor& input, const Tensor& target) {
            new (e) nn::Example{input, target};
          },
          "input"_a, "target"_a)
      .def_ro("input", &nn::Example::input, "What it is given.")
      .def_ro("target", &nn::Example::target, "What it should say.")
      .def(
          "__iter__", [](const nn::Example& e) { return nb::iter(nb::make_tuple(e.input, e.target)); },
          nb::sig("def __iter__(self) -> Iterator[Tensor]"));
  bind_tokenizer(m);
  bind_data(m);
  bind_chat(m);
}

}  // namespace weft::python
