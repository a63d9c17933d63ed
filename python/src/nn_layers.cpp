#include <nanobind/stl/vector.h>

#include "python/src/fields.h"
#include "python/src/module.h"
#include "weft/models.h"
#include "weft/vision.h"

// Layers and models that C++ has, as Python classes: the same objects.
namespace weft::python {
namespace {

using namespace nb::literals;

template <class M>
nb::object called(const M& m, const Tensor& x) {
  Tensor y;
  {
    const Unlocked unlocked(is_quick(x));
    y = m(x);
  }
  return nb::steal(to_object(std::move(y)));
}

/// A layer from a tensor to a tensor.
template <class M>
nb::class_<M, nn::Module> layer(nb::module_& m, const char* name, const char* doc) {
  nb::class_<M, nn::Module> c(m, name, nb::is_final(), doc);
  c.def("__call__", called<M>, "x"_a, nb::sig("def __call__(self, x: Tensor) -> Tensor"));
  return c;
}

/// A tensor that is a field; None where the layer has none.
template <class M>
void tensor_field(nb::class_<M, nn::Module>& c, const char* name, Tensor M::* field, const char* doc,
                  bool trained = true) {
  const std::string what = std::string(nb::str(c.attr("__name__")).c_str()) + "." + name;
  c.def_prop_rw(
      name, [field](const M& m) { return nb::steal(to_object(m.*field)); },
      [field, trained, what](M& m, const Tensor& t) { set_field(m.*field, t, trained, what); }, doc);
}

void bind_layers(nb::module_& m) {
  auto linear = layer<nn::Linear>(m, "Linear",
                                  "y = x Wᵀ + b.\n\nShape    x [..., inputs] -> [..., outputs]; weight "
                                  "[outputs, inputs], bias [outputs] or none.");
  linear.def(nb::init<int64_t, int64_t, bool>(), "inputs"_a, "outputs"_a, "bias"_a = true)
      .def(nb::init<int64_t, int64_t, bool, nn::Initial>(), "inputs"_a, "outputs"_a, "bias"_a, "first"_a);
  tensor_field(linear, "weight", &nn::Linear::weight, "[outputs, inputs]");
  tensor_field(linear, "bias", &nn::Linear::bias, "[outputs], or None");

  auto embedding = layer<nn::Embedding>(m, "Embedding",
                                        "A learned row for each of `count` numbers.\n\nShape    ids [...] -> "
                                        "[..., width]; weight [count, width].");
  embedding.def(nb::init<int64_t, int64_t, nn::Initial>(), "count"_a, "width"_a,
                "first"_a = nn::Initial::normal(1));
  tensor_field(embedding, "weight", &nn::Embedding::weight, "[count, width]");

  auto layer_norm = layer<nn::LayerNorm>(
      m, "LayerNorm", "Mean 0 and variance 1 for each row of the last axis, then a learned scale and shift.");
  layer_norm.def(nb::init<int64_t, double, bool>(), "width"_a, "epsilon"_a = 1e-5, "bias"_a = true);
  tensor_field(layer_norm, "weight", &nn::LayerNorm::weight, "[width]");
  tensor_field(layer_norm, "bias", &nn::LayerNorm::bias, "[width], or None");

  auto rms_norm = layer<nn::RMSNorm>(
      m, "RMSNorm", "Root mean square 1 for each row of the last axis, then a learned scale.");
  rms_norm.def(nb::init<int64_t, double>(), "width"_a, "epsilon"_a = 1e-6);
  tensor_field(rms_norm, "weight", &nn::RMSNorm::weight, "[width]");

  layer<nn::Dropout>(m, "Dropout",
                     "Zeroes elements at random while `training` is on, and changes nothing otherwise.")
      .def(nb::init<double>(), "p"_a);

  auto conv =
      layer<nn::Conv2d>(m, "Conv2d", "Slides `outputs` kernels over images [batch, inputs, height, width].");
  conv.def(
      "__init__",
      [](nn::Conv2d* c, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
         int64_t dilation, int64_t groups, bool bias) {
        new (c) nn::Conv2d({.in = in,
                            .out = out,
                            .kernel = kernel,
                            .stride = stride,
                            .padding = padding,
                            .dilation = dilation,
                            .groups = groups,
                            .bias = bias});
      },
      "inputs"_a, "outputs"_a, "kernel"_a = 3, "stride"_a = 1, "padding"_a = 0, "dilation"_a = 1,
      "groups"_a = 1, "bias"_a = true);
  tensor_field(conv, "weight", &nn::Conv2d::weight, "[outputs, inputs / groups, kernel, kernel]");
  tensor_field(conv, "bias", &nn::Conv2d::bias, "[outputs], or None");

  auto batch_norm = layer<nn::BatchNorm2d>(
      m, "BatchNorm2d", "Mean 0 and variance 1 for each channel, then a learned scale and shift.");
  batch_norm.def(nb::init<int64_t, double, double>(), "channels"_a, "epsilon"_a = 1e-5, "momentum"_a = 0.1);
  tensor_field(batch_norm, "weight", &nn::BatchNorm2d::weight, "[channels]");
  tensor_field(batch_norm, "bias", &nn::BatchNorm2d::bias, "[channels]");
  tensor_field(batch_norm, "running_mean", &nn::BatchNorm2d::running_mean, "[channels]", false);
  tensor_field(batch_norm, "running_variance", &nn::BatchNorm2d::running_variance, "[channels]", false);
}

void bind_blocks(nb::module_& m) {
  using nn::Activation, nn::Initial;
  nb::enum_<Activation>(m, "Activation", "What stands between the two layers of an MLP.")
      .value("gelu", Activation::gelu)
      .value("gelu_tanh", Activation::gelu_tanh)
      .value("relu", Activation::relu)
      .value("silu", Activation::silu);
  layer<nn::Attention>(
      m, "Attention",
      "Causal self-attention. `kv_heads`: groups of heads share keys and values; 0: each has its own. "
      "`norm_heads`: "
      "RMSNorm of each head's queries and keys.\n\nShape    x [batch, seq, width] -> the same.")
      .def(
          "__init__",
          [](nn::Attention* a, int64_t width, int64_t heads, int64_t kv_heads, int64_t head_dim, bool bias,
             bool out_bias, bool norm_heads) {
            new (a) nn::Attention({.width = width,
                                   .heads = heads,
                                   .kv_heads = kv_heads,
                                   .head_dim = head_dim,
                                   .bias = bias,
                                   .out_bias = out_bias,
                                   .norm_heads = norm_heads});
          },
          "width"_a, "heads"_a = 1, "kv_heads"_a = 0, "head_dim"_a = 0, "bias"_a = false,
          "out_bias"_a = false, "norm_heads"_a = false);
  layer<nn::MLP>(m, "MLP",
                 "Two layers with an activation between.\n\nShape    x [..., width] -> the same, through "
                 "`hidden` numbers.")
      .def(nb::init<int64_t, int64_t, Activation, bool, Initial, Initial>(), "width"_a, "hidden"_a,
           "activation"_a = Activation::gelu, "bias"_a = true, "first"_a = Initial::normal(0.02),
           "first_out"_a = Initial::normal(0.02));
  layer<nn::GatedMLP>(m, "GatedMLP",
                      "An MLP whose hidden numbers are scaled by a second, activated layer.\n\nShape    x "
                      "[..., width] -> the same, "
                      "through `hidden` numbers.")
      .def(nb::init<int64_t, int64_t, Activation, Initial, Initial>(), "width"_a, "hidden"_a,
           "activation"_a = Activation::silu, "first"_a = Initial::normal(0.02),
           "first_out"_a = Initial::normal(0.02));
}

void bind_models(nb::module_& m) {
  nb::class_<nn::LanguageModel, nn::Module>(
      m, "LanguageModel", nb::is_final(),
      "Tokens [batch, seq] to scores of the next token [batch, seq, vocabulary].")
      .def("__call__", called<nn::LanguageModel>, "tokens"_a,
           nb::sig("def __call__(self, tokens: Tensor) -> Tensor"))
      .def(
          "features",
          [](const nn::LanguageModel& model, const Tensor& tokens) { return model.features(tokens); },
          "tokens"_a, "What the blocks make of each token: [batch, seq, width].")
      .def("scores", &nn::LanguageModel::scores, "features"_a,
           "Features [..., width] to logits [..., vocabulary].")
      .def_prop_ro("vocabulary", &nn::LanguageModel::vocabulary, "How many tokens there are.")
      .def_prop_ro("context", &nn::LanguageModel::context, "The longest sequence.");
  nb::class_<nn::GPT, nn::LanguageModel>(
      m, "GPT", nb::is_final(),
      "GPT-2: learned positions, LayerNorm before each part, scores by the embedding itself.")
      .def(
          "__init__",
          [](nn::GPT* model, int64_t vocabulary, int64_t context, int64_t layers, int64_t heads,
             int64_t width, int64_t hidden, double dropout, double epsilon, nn::Activation activation,
             bool recompute) {
            new (model) nn::GPT(
                {vocabulary, context, layers, heads, width, hidden, dropout, epsilon, activation, recompute});
          },
          "vocabulary"_a, "context"_a = 64, "layers"_a = 4, "heads"_a = 4, "width"_a = 128, "hidden"_a = 0,
          "dropout"_a = 0.0, "epsilon"_a = 1e-5, "activation"_a = nn::Activation::gelu_tanh,
          "recompute"_a = false);
  nb::class_<nn::Llama, nn::LanguageModel>(
      m, "Llama", nb::is_final(), "Llama and its kin: rotary positions, RMSNorm, gated MLP, grouped heads.")
      .def(
          "__init__",
          [](nn::Llama* model, int64_t vocabulary, int64_t context, int64_t layers, int64_t heads,
             int64_t kv_heads, int64_t width, int64_t hidden, double rope_base, bool tied) {
            new (model) nn::Llama({.vocabulary = vocabulary,
                                   .context = context,
                                   .layers = layers,
                                   .heads = heads,
                                   .kv_heads = kv_heads,
                                   .width = width,
                                   .hidden = hidden,
                                   .rope_base = rope_base,
                                   .tied_embedding = tied});
          },
          "vocabulary"_a, "context"_a = 2048, "layers"_a = 4, "heads"_a = 4, "kv_heads"_a = 4,
          "width"_a = 128, "hidden"_a = 352, "rope_base"_a = 10000.0, "tied_embedding"_a = false);
  nb::class_<nn::ResNet, nn::Module>(m, "ResNet", nb::is_final(), "The residual network for small images.")
      .def(
          "__init__",
          [](nn::ResNet* model, int64_t channels, int64_t classes, std::vector<int64_t> widths,
             int64_t blocks) { new (model) nn::ResNet({channels, classes, std::move(widths), blocks}); },
          "channels"_a = 3, "classes"_a = 10, "widths"_a = std::vector<int64_t>{16, 32, 64}, "blocks"_a = 3)
      .def("__call__", called<nn::ResNet>, "images"_a,
           nb::sig("def __call__(self, images: Tensor) -> Tensor"));
}

}  // namespace

void bind_nn_layers(nb::module_& m) {
  bind_layers(m);
  bind_blocks(m);
  bind_models(m);
  m.def(
      "global_average_pool", [](const Tensor& x) { return nn::global_average_pool(x); }, "x"_a,
      "The mean of each channel.");
  m.def("flatten", [](const Tensor& x) { return nn::flatten(x); }, "x"_a, "All axes but the first as one.");
  m.def(
      "token_loss",
      [](const Tensor& logits, const Tensor& targets) { return nn::token_loss(logits, targets); }, "logits"_a,
      "targets"_a,
      "The mean negative log-likelihood of the target tokens.\n\n"
      "Shape    logits [..., vocabulary], targets [...]; the loss has rank 0.");
}

}  // namespace weft::python
