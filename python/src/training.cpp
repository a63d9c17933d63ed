#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "nn/history.h"
#include "python/src/convert.h"
#include "python/src/module.h"
#include "weft/trainer.h"

// Runs of language models: on disk, taken up again to the same bits.
namespace weft::python {
namespace {

using namespace nb::literals;

void bind_configs(nb::module_& m) {
  nb::class_<nn::GPTConfig>(m, "GPTConfig", "The sizes of a GPT.")
      .def(
          "__init__",
          [](nn::GPTConfig* c, int64_t vocabulary, int64_t context, int64_t layers, int64_t heads,
             int64_t width, double dropout) {
            new (c) nn::GPTConfig{.vocabulary = vocabulary,
                                  .context = context,
                                  .layers = layers,
                                  .heads = heads,
                                  .width = width,
                                  .dropout = dropout};
          },
          "vocabulary"_a = 0, "context"_a = 64, "layers"_a = 4, "heads"_a = 4, "width"_a = 128,
          "dropout"_a = 0.0)
      .def_ro("vocabulary", &nn::GPTConfig::vocabulary)
      .def_ro("context", &nn::GPTConfig::context)
      .def_ro("layers", &nn::GPTConfig::layers)
      .def_ro("heads", &nn::GPTConfig::heads)
      .def_ro("width", &nn::GPTConfig::width);
  nb::class_<nn::LlamaConfig>(m, "LlamaConfig", "The sizes of a Llama.")
      .def(
          "__init__",
          [](nn::LlamaConfig* c, int64_t vocabulary, int64_t context, int64_t layers, int64_t heads,
             int64_t kv_heads, int64_t width, int64_t hidden) {
            new (c) nn::LlamaConfig{.vocabulary = vocabulary,
                                    .context = context,
                                    .layers = layers,
                                    .heads = heads,
                                    .kv_heads = kv_heads,
                                    .width = width,
                                    .hidden = hidden};
          },
          "vocabulary"_a = 0, "context"_a = 2048, "layers"_a = 4, "heads"_a = 4, "kv_heads"_a = 4,
          "width"_a = 128, "hidden"_a = 352)
      .def_ro("vocabulary", &nn::LlamaConfig::vocabulary)
      .def_ro("context", &nn::LlamaConfig::context);
}

/// A run that begins: the vocabulary is the tokenizer's.
nn::Checkpoint begun(nn::LanguageModelConfig model, const io::Tokenizer& tokenizer,
                     nn::TrainSettings settings) {
  std::visit([&](auto& config) { config.vocabulary = tokenizer.size(); }, model);
  settings.model = model;
  return nn::begin_run({.settings = settings, .tokenizer = tokenizer});
}

void bind_run(nb::module_& m) {
  nb::class_<nn::Checkpoint>(
      m, "Run", "A training run: model, optimiser, settings and tokenizer, new or as it was saved.")
      .def(
          "__init__",
          [](nn::Checkpoint* run, const nn::LanguageModelConfig& model, const io::Tokenizer& tokenizer,
             nb::handle dtype, const nn::Schedule& schedule, int64_t steps, int64_t batch, int64_t accumulate,
             double weight_decay, double clip, uint64_t seed, bool compile) {
            nn::TrainSettings settings{
                .dtype = dtype_from(dtype.ptr()), .weight_decay = weight_decay, .clip = clip};
            settings.schedule = schedule, settings.steps = steps, settings.batch = batch;
            settings.accumulate = accumulate, settings.seed = seed, settings.compile = compile;
            new (run) nn::Checkpoint(begun(model, tokenizer, settings));
          },
          "model"_a, "tokenizer"_a, "dtype"_a = "f32", "schedule"_a = nn::Schedule{.warmup = 100},
          "steps"_a = 0, "batch"_a = 12, "accumulate"_a = 1, "weight_decay"_a = 0.1, "clip"_a = 1.0,
          "seed"_a = 1, "compile"_a = false,
          nb::sig(
              "def __init__(self, model: GPTConfig | LlamaConfig, tokenizer: Tokenizer, dtype: DTypeLike = "
              "'f32', schedule: Schedule = ..., steps: int = 0, batch: int = 12, accumulate: int = 1, "
              "weight_decay: float = 0.1, clip: float = 1.0, seed: int = 1, compile: bool = False) -> None"),
          "A new run. `compile`: the step as one program. `steps`: of the whole run; 0: what step() is told "
          "by a clock.")
      .def_static(
          "load", [](const std::filesystem::path& folder) { return nn::load_checkpoint(folder.string()); },
          "folder"_a, "Reads a run to the default backend.")
      .def(
          "save",
          [](const nn::Checkpoint& run, const std::filesystem::path& folder) {
            nn::save_checkpoint(folder.string(), run);
          },
          "folder"_a, "Creates the folder if it is missing, and replaces the run in it atomically.")
      .def_prop_ro(
          "model", [](nn::Checkpoint& run) { return run.model.get(); }, nb::rv_policy::reference_internal,
          "The model; it is the run's.")
      .def_prop_ro(
          "steps", [](const nn::Checkpoint& run) { return run.info.settings.steps; },
          "Of the whole run; 0: as a clock says.")
      .def_prop_ro(
          "steps_taken", [](const nn::Checkpoint& run) { return run.info.step; },
          "How many steps were taken.")
      .def_prop_ro(
          "tokenizer", [](const nn::Checkpoint& run) { return run.info.tokenizer; }, "What made its tokens.");
}

/// The history of a run, with its settings, which its page shows.
struct RunHistory {
  nn::History history;
  nn::TrainSettings settings;
};

void bind_history(nb::module_& m) {
  using Number = std::optional<double>;
  nb::class_<RunHistory>(m, "History",
                         "The history of a run: `log.jsonl` in a folder, a JSON object a line, and the "
                         "curves of it. In a notebook it is "
                         "shown as the page that `weft train` writes.")
      .def(
          "__init__",
          [](RunHistory* h, const nn::Checkpoint& run, const std::filesystem::path& folder) {
            new (h) RunHistory{nn::History(folder.string(), run.info.step), run.info.settings};
          },
          "run"_a, "folder"_a = "",
          "Goes on with the log in `folder`, without the lines of steps that the run has not taken. Without "
          "a folder there is no log.")
      .def(
          "add",
          [](RunHistory& h, int64_t step, Number loss, Number rate, Number speed, Number validation,
             std::optional<std::string> sample) {
            h.history.add({step, loss, rate, speed, validation, std::move(sample)});
            if (const auto trouble = h.history.trouble(); !trouble.empty())
              if (PyErr_WarnEx(PyExc_RuntimeWarning, trouble.c_str(), 1) != 0) throw nb::python_error();
          },
          "step"_a, nb::kw_only(), "loss"_a = nb::none(), "rate"_a = nb::none(),
          "tokens_per_second"_a = nb::none(), "validation_loss"_a = nb::none(), "sample"_a = nb::none(),
          "What is known after a step.")
      .def("__repr__",
           [](const RunHistory& h) {
             const auto& losses = h.history.losses();
             if (losses.empty()) return std::string("<weft.nn.History of no step>");
             return fmt::format("<weft.nn.History of {} losses; step {}: {:.4g}>", losses.size(),
                                losses.back().first, losses.back().second);
           })
      .def_prop_ro(
          "losses", [](const RunHistory& h) { return h.history.losses(); },
          "(step, loss) of all that were added.")
      .def(
          "page", [](const RunHistory& h) { return h.history.page(h.settings); },
          "training.html, which needs nothing beside it.")
      .def(
          "write_page",
          [](const RunHistory& h) {
            raise_if(h.history.write_page(h.settings));
            return h.history.page_path();
          },
          "Writes it into the folder, and gives its path.")
      .def("_repr_html_", [](nb::handle self) {
        return nb::module_::import_("weft.display").attr("framed")(self.attr("page")());
      });
}

// A batch at a time, so that Control-C ends it; the rows are the same.
nn::Evaluation evaluated(nn::LanguageModel& model, std::span<const int32_t> ids, int64_t batch) {
  const auto context = static_cast<size_t>(model.context());
  const bool parts = batch >= 1 && static_cast<size_t>(batch) <= ids.size() / context;
  const size_t many = parts ? static_cast<size_t>(batch) * context : ids.size();
  nn::Evaluation all;
  double sum = 0;
  for (;; ids = ids.subspan(many)) {
    const bool last = ids.size() <= many + 1;
    nn::Evaluation e;
    {
      const Unlocked unlocked;
      e = nn::evaluate(model, last ? ids : ids.first(many + 1), batch);
    }
    sum += e.loss * static_cast<double>(e.tokens), all.tokens += e.tokens;
    if (last) break;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  all.loss = sum / static_cast<double>(all.tokens);
  return all;
}

void bind_trainer(nb::module_& m) {
  nb::class_<nn::Evaluation>(m, "Evaluation", "How well a model predicts text.")
      .def_ro("loss", &nn::Evaluation::loss, "Mean negative log-likelihood of a token, in nats.")
      .def_ro("tokens", &nn::Evaluation::tokens, "How many were predicted.")
      .def_prop_ro("perplexity", &nn::Evaluation::perplexity, "e^loss");
  nb::class_<nn::Trainer>(
      m, "Trainer",
      "Takes the steps of a run. The same run and data give the same steps, bit for bit, however "
      "often it was saved and taken up again in between.")
      .def(nb::init<nn::Checkpoint&, const io::TokenData&>(), "run"_a, "data"_a, nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>())
      .def("step", &nn::Trainer::step, "clock"_a = 0.0, nb::call_guard<Unlocked>(),
           "One step; gives the mean loss of its batches. `clock` is the part of the run that is over, where "
           "the run has "
           "no number of steps.")
      .def("tokens_in_step", &nn::Trainer::tokens_in_step, "How many tokens a step learns from.")
      .def("rate", &nn::Trainer::rate, "clock"_a = 0.0, "What the next step takes.")
      .def("validate", &nn::Trainer::validate, "rows"_a = 64, nb::call_guard<Unlocked>(),
           "The loss on validation rows, the same ones each time.")
      .def("sync", &nn::Trainer::sync, nb::call_guard<Unlocked>(),
           "Brings what a compiled step keeps in its program back into the run's tensors.");
  m.def(
      "evaluate",
      [](nn::LanguageModel& model, const std::vector<int32_t>& ids, int64_t batch) {
        return evaluated(model, ids, batch);
      },
      "model"_a, "ids"_a, "batch"_a = 8, "Loss over all of `ids`, cut into rows of the model's context.");
}

}  // namespace

void bind_training(nb::module_& m) {
  bind_configs(m);
  bind_run(m);
  bind_history(m);
  bind_trainer(m);
}

}  // namespace weft::python
