#include "ops/shared/gelu.h"
#include "compiler/recompose.h"

namespace weft::compiler {

using namespace terms;

static Term cube(const Term& x) { return op("power", {x, number(3)}) | mul(square(x), x); }

// erf(x / sqrt(2)), and tanh(sqrt(2 / pi) (x + 0.044715 x^3)) with x multiplied out or not.
static Term erf_of(const Term& x) { return op("erf", {scaled(x, 1 / std::numbers::sqrt2)}); }
static Term tanh_of(const Term& x) {
  const Term scale = number(ir::kGeluScale), factor = number(ir::kGeluCube);
  const Term sum = add(x, mul(factor, cube(x)) | product(x, x, mul(factor, x)));
  const Term inner = add(mul(factor, square(x)) | mul(mul(factor, x), x), number(1));
  return op("tanh", {mul(scale, sum) | product(scale, x, inner)});
}

static std::vector<Term> terms_of_gelu() {
  const Term x = any("x"), half = number(0.5);
  std::vector<Term> all;
  for (const Term& f : {erf_of(x).as("erf"), tanh_of(x).as("tanh")}) {
    const Term upper = add(f, number(1));
    all.push_back(product(x, half, upper));
    all.push_back(mul(div(x, number(2)), upper));
    all.push_back(div(mul(x, upper), number(2)));
  }
  return all;
}

static ir::Value make_gelu(const Place& p) {
  return p.graph.one("gelu", {p.value("x")}, {{"approximate", int64_t{p.match.has("tanh")}}});
}

extern const Recomposition gelu_recomposition = {"gelu", terms_of_gelu, make_gelu};

}  // namespace weft::compiler
