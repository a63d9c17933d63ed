#pragma once
#include <memory>
#include <string>

#include "weft/checkpoint.h"
#include "weft/data.h"
#include "weft/jit.h"

namespace weft::nn {

/// A batch as i32 tensors [rows, context] on the default backend.
Example example_of(const io::Batch& batch);

/// How well a model foresees text.
struct Evaluation {
  double loss = 0;  ///< mean negative log-likelihood of a token, in nats
  int64_t tokens = 0;
  double perplexity() const;  ///< e^loss
};

/// Loss over all of `ids`, cut into rows of the model's context: each token but the first is foreseen once,
/// from those before it in its row.
///
/// Errors   invalid_argument for fewer than 2 ids.
Evaluation evaluate(LanguageModel& model, std::span<const int32_t> ids, int64_t batch = 8);

/// The training step of a run as one program, which changes the run's parameters and states.
///
/// Takes    tokens and targets, i32 [batch, context], and the rate, a scalar in f64 for a model in f64 and in
///          f32 for all others. Where the settings accumulate, tokens0, targets0, tokens1 and so on.
/// Gives    the mean loss.
Compiled compile_step(Checkpoint& run, const Dim& batch, const CompileOptions& options);

/// Takes the steps of a run. The same checkpoint and data give the same steps, bit for bit, however often the
/// run was saved and taken up again in between; `done` aside, which a clock may say.
class Trainer {
 public:
  /// Keeps references to both. The run's model is set to train.
  ///
  /// Errors   invalid_argument when the data has another context or tokenizer than the run.
  Trainer(Checkpoint& run, const io::TokenData& data);

  /// One step. Where the settings say no number of steps, `clock` is the part of the run that is over, from 0
  /// to 1, for the schedule.
  ///
  /// Returns  the mean loss of the step's batches.
  /// Errors   invalid_argument when it is not finite: names the step and the first tensor that is not. The
  ///          run's tensors are those before that step then, and have no gradients; in a compiled run the
  ///          optimiser's moments have gone on as after a gradient of zeros. Steps after that are eager.
  double step(double clock = 0);
  /// What the next step takes.
  double rate(double clock = 0) const;
  int64_t tokens_in_step() const;

  /// The loss on validation rows, the same ones each time.
  Evaluation validate(int64_t rows = 64);

  /// Brings what a compiled step keeps in its program back into the run's tensors: before they are saved or
  /// read. Nothing to do in an eager run, nor where they share their memory, as they do on one device.
  void sync();

 private:
  std::vector<Tensor> batches(int64_t step) const;
  double eager_step(const Tensor& rate);
  double compiled_step(const Tensor& rate);
  std::string where_lost() const;
  [[noreturn]] void refuse(double loss);

  Checkpoint& run_;
  const io::TokenData& data_;
  std::unique_ptr<Compiled> compiled_;
  std::vector<Tensor> next_batches_;  // of step next_step_, made while the device ran the one before
  int64_t next_step_ = -1;
};

}  // namespace weft::nn
