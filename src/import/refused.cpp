#include "import/refused.h"

namespace weft::importer {
namespace {

constexpr const char* kBackward = "a part of a backward pass; export the forward pass alone";
constexpr const char* kCounts =
    "how many results there are depends on data, and the sizes of a program don't; use masks and where(), or "
    "torch.nonzero_static(x, size=N)";
constexpr const char* kComplex =
    "its numbers are complex, which Weft has not; transform outside of the model";
constexpr const char* kDraws = "it draws random numbers; make them an input of the model";
constexpr const char* kNumber =
    "a number of Python's that depends on data; keep it a tensor, without .item(), int() or an if on it";

struct Refused {
  const char *name, *why;
};
constexpr Refused kRefused[] = {
    {"_fft_c2c.default", kComplex},
    {"_fft_c2r.default", kComplex},
    {"_fft_r2c.default", kComplex},
    {"_local_scalar_dense.default", kNumber},
    {"_unique2.default", kCounts},
    {"atan2.out", "it writes into a tensor that it is given; call atan2 without out="},
    {"bernoulli.default", kDraws},
    {"bincount.default", kCounts},
    {"embedding_dense_backward.default", kBackward},
    {"item.default", kNumber},
    {"masked_select.default", kCounts},
    {"multinomial.default", kDraws},
    {"native_group_norm_backward.default", kBackward},
    {"native_layer_norm_backward.default", kBackward},
    {"nonzero.default", kCounts},
    {"nonzero_numpy.default", kCounts},
    {"normal.Tensor_Tensor", kDraws},
    {"rand.default", kDraws},
    {"rand_like.default", kDraws},
    {"randint.default", kDraws},
    {"randint.low", kDraws},
    {"randn.default", kDraws},
    {"randn_like.default", kDraws},
    {"randperm.default", kDraws},
    {"resize_.default",
     "it changes a size in place, and new elements are what memory held; make a new tensor"},
    {"unique_consecutive.default", kCounts},
    {"unique_dim.default", kCounts},
};

}  // namespace

const char* why_refused(std::string_view name) {
  for (const Refused& r : kRefused)
    if (name == r.name) return r.why;
  return nullptr;
}

}  // namespace weft::importer
