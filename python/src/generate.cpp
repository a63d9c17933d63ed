#include "weft/generate.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/src/convert.h"
#include "python/src/made.h"
#include "python/src/module.h"
#include "weft/pretrained.h"

// Text out of language models.
namespace weft::python {
namespace {

using namespace nb::literals;

/// What a generation refers to, kept with it.
struct Writing {
  nb::object decoder;
  io::Tokenizer tokenizer;
  nn::Generation generation;

  Writing(nb::object d, io::Tokenizer t, nn::Generation g)
      : decoder(std::move(d)), tokenizer(std::move(t)), generation(std::move(g)) {}
  Writing(const Writing&) = delete;
};

void bind_sampling(nb::module_& m) {
  nb::class_<io::Sampling>(m, "Sampling",
                           "How the next token is chosen: by softmax of the scores, after these have changed "
                           "them. The defaults change nothing.")
      .def(
          "__init__",
          [](io::Sampling* s, double temperature, int64_t top_k, double top_p, double min_p, double penalty,
             uint64_t seed, std::vector<int32_t> never) {
            new (s) io::Sampling{penalty, temperature, top_k, top_p, min_p, seed, std::move(never)};
          },
          nb::kw_only(), "temperature"_a = 1.0, "top_k"_a = 0, "top_p"_a = 1.0, "min_p"_a = 0.0,
          "repetition_penalty"_a = 1.0, "seed"_a = 1, "never"_a = std::vector<int32_t>())
      .def_rw("temperature", &io::Sampling::temperature,
              "Low keeps to what is likely; 0 takes the likeliest.")
      .def_rw("top_k", &io::Sampling::top_k, "Only the k likeliest; 0: all.")
      .def_rw("top_p", &io::Sampling::top_p, "Only the likeliest, as few as have this probability together.")
      .def_rw("min_p", &io::Sampling::min_p, "Only those that have this part of the largest probability.")
      .def_rw("repetition_penalty", &io::Sampling::repetition_penalty,
              "Scores of tokens that were there are lowered by it.")
      .def_rw("seed", &io::Sampling::seed, "The same seed gives the same text.")
      .def_rw("never", &io::Sampling::never, "These are not chosen.");
}

void bind_decoder(nb::module_& m) {
  nb::class_<nn::Decoder>(m, "Decoder",
                          "A language model that reads sequences of tokens a few at a time, each token once: "
                          "its cache and one compiled program.")
      .def(
          "__init__",
          [](nn::Decoder* d, const nn::LanguageModel& model, int64_t batch, int64_t capacity, bool take) {
            const Unlocked released;
            nn::DecoderConfig config{.batch = batch, .capacity = capacity};
            config.compile.take_captured = take;
            new (d) nn::Decoder(model, config);
          },
          "model"_a, "batch"_a = 1, "capacity"_a = 0, "take_weights"_a = false,
          "`take_weights`: the program works in the model's memory, for large models; the model can't be "
          "trained meanwhile.")
      .def(
          "read",
          [](nn::Decoder& d, const std::vector<std::vector<int32_t>>& tokens) {
            const Unlocked released;
            const std::vector<std::span<const int32_t>> spans(tokens.begin(), tokens.end());
            d.read(spans);
          },
          "tokens"_a, "Appends tokens[i] to sequence i, which may be none.")
      .def(
          "scores",
          [](const nn::Decoder& d, int64_t sequence) {
            const auto scores = d.scores(sequence);
            const int64_t n[] = {static_cast<int64_t>(scores.size())};
            return nb::steal(to_object(Tensor::of(scores, n, DType::f32)));
          },
          "sequence"_a = 0, nb::sig("def scores(self, sequence: int = 0) -> Tensor"),
          "Scores of the next token.")
      .def("rewind", &nn::Decoder::rewind, "sequence"_a, "length"_a,
           "Truncates a sequence to its first `length` tokens.")
      .def_prop_ro("batch", &nn::Decoder::batch, "How many sequences there are.")
      .def_prop_ro("capacity", &nn::Decoder::capacity, "Tokens of cache for each of them.");
}

void bind_generation(nb::module_& m) {
  nb::class_<Writing>(m, "Generation", "Generates a text for each prompt, a token at a time.")
      .def(
          "__init__",
          [](Writing* w, nb::object decoder, const io::Tokenizer& tokenizer,
             const std::vector<std::vector<int32_t>>& prompts, int64_t length, const io::Sampling& sampling,
             std::vector<int32_t> ends, std::vector<std::string> stops, bool forget) {
            auto& d = nb::cast<nn::Decoder&>(decoder);
            nn::GenerateOptions options{.length = length,
                                        .sampling = sampling,
                                        .ends = std::move(ends),
                                        .forget = forget,
                                        .stops = std::move(stops)};
            const Unlocked released;
            nn::Generation made(d, tokenizer, prompts, std::move(options));
            const Locked locked;
            new (w) Writing(std::move(decoder), tokenizer, std::move(made));
          },
          "decoder"_a, "tokenizer"_a, "prompts"_a, "length"_a = 200, "sampling"_a = io::Sampling(),
          "ends"_a = std::vector<int32_t>(), "stops"_a = std::vector<std::string>(), "forget"_a = false)
      .def(
          "step",
          [](Writing& w) {
            const Unlocked released;
            return w.generation.step();
          },
          "One token for each unfinished text; False if there is none.")
      .def(
          "text", [](const Writing& w, int64_t i) { return text_of(w.generation.text(i)); }, "i"_a = 0,
          nb::sig("def text(self, i: int = 0) -> str"), "The text that the last step completed.")
      .def(
          "tokens",
          [](const Writing& w, int64_t i) {
            const auto ids = w.generation.tokens(i);
            return std::vector<int32_t>(ids.begin(), ids.end());
          },
          "i"_a = 0, "All generated tokens.")
      .def(
          "finish", [](const Writing& w, int64_t i) { return nn::name(w.generation.finish(i)); }, "i"_a = 0,
          "Why a text ended: none, end, stop, length or full.");
}

// Where tensors lie, and how often they were written, as bytes that can be compared.
nb::bytes versions_of(const std::vector<Tensor>& tensors) {
  std::string all;
  for (const Tensor& t : tensors) {
    const seam::Buffer* const memory = t.impl()->buffer.get();
    const uint32_t version = memory->version.load(std::memory_order_relaxed);
    all.append(reinterpret_cast<const char*>(&memory), sizeof memory);
    all.append(reinterpret_cast<const char*>(&version), sizeof version);
  }
  return nb::bytes(all.data(), all.size());
}

void bind_pretrained(nb::module_& m) {
  using nn::PretrainedGeneration;
  m.def("_versions", versions_of, "tensors"_a);
  nb::class_<PretrainedGeneration>(
      m, "PretrainedGeneration",
      "How a Hugging Face folder wants its text chosen; a field that it does not have is None.")
      .def_ro("temperature", &PretrainedGeneration::temperature)
      .def_ro("top_k", &PretrainedGeneration::top_k)
      .def_ro("top_p", &PretrainedGeneration::top_p)
      .def_ro("min_p", &PretrainedGeneration::min_p)
      .def_ro("repetition_penalty", &PretrainedGeneration::repetition_penalty)
      .def_ro("max_new_tokens", &PretrainedGeneration::max_new_tokens)
      .def_ro("ends", &PretrainedGeneration::ends)
      .def_ro("never", &PretrainedGeneration::never)
      .def_ro("stops", &PretrainedGeneration::stops);
  m.def(
      "load_pretrained",
      [](const std::string& folder, nb::handle dtype) {
        const DType type = dtype_from(dtype.ptr());
        const Unlocked released;
        return nn::load_pretrained(folder, type);
      },
      "folder"_a, "dtype"_a = "f32",
      nb::sig("def load_pretrained(folder: str, dtype: DTypeLike = 'f32') -> LanguageModel"),
      "Reads a model as Hugging Face's libraries save it: GPT-2, Llama, Qwen2.5 or Qwen3.");
  m.def("load_generation", &nn::load_generation, "folder"_a, "Reads generation_config.json.");
}

}  // namespace

void bind_generate(nb::module_& m) {
  bind_sampling(m);
  bind_decoder(m);
  bind_generation(m);
  bind_pretrained(m);
}

}  // namespace weft::python
