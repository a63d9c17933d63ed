#include "conformance/drawn/lie.h"

#include <sys/mman.h>

#include <cstring>

#include "conformance/liars/liar.h"
#include "eager/apply.h"
#include "seam/registry.h"

namespace weft::conformance {

std::string text(const When& when) {
  switch (when.kind) {
    case When::Kind::always: return "";
    case When::Kind::dtype: return fmt::format(" in {}", name(when.dtype));
    case When::Kind::one_size: return fmt::format(" at {} elements", when.n);
    case When::Kind::above: return fmt::format(" above {} elements", when.n);
    case When::Kind::batch: return fmt::format(" for more than {} rows", when.n);
    case When::Kind::from_call: return fmt::format(" from call {} of the same types on", when.n);
    case When::Kind::from_launch: return fmt::format(" from launch {} on", when.n);
  }
  return "";
}

std::string text(const Lie& lie) {
  std::string fault = lie.flaw->words;
  if (const auto* op = ir::find_op(lie.op); fault == "takes the default of an attribute" && op)
    fault = fmt::format("takes the default of {}", op->attrs[lie.drawn % op->attrs.size()].name);
  return fmt::format("{}: {}{}", lie.kernel, fault, text(lie.when));
}

Teller::Teller(std::string name, const weft_backend& inner) : Mirrored(std::move(name), inner) {
  void* memory = ::mmap(nullptr, sizeof *told_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(fail(Code::out_of_memory, "no page to share with children"));
  told_ = static_cast<int64_t*>(memory);
}

void Teller::tell(const Lie& lie) {
  lie_ = lie;
  *told_ = launches_ = 0;
  calls_.clear(), last_.clear();
  eager::clear_call_cache();
}

static int64_t elements(const weft_type& t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t.rank; ++d) n *= t.max[d];
  return n;
}

bool Teller::is_struck(const weft_call& call) const {
  const weft_type& out = *call.outputs[0];
  if (elements(out) < lie_.flaw->least) return false;
  switch (lie_.when.kind) {
    case When::Kind::dtype: return backend::TypeView(&out).known_dtype() == lie_.when.dtype;
    case When::Kind::one_size: return elements(out) == lie_.when.n;
    case When::Kind::above: return elements(out) > lie_.when.n;
    case When::Kind::batch: return out.rank > 0 && out.max[0] > lie_.when.n;
    default: return true;
  }
}

weft_code Teller::accepts(const weft_kernel& kernel, weft_device d, const weft_call* c, weft_error* e) {
  const weft_code code = Wrapped::accepts(kernel, d, c, e);
  const bool refuses = lie_.flaw && lie_.flaw->kind == Flaw::Kind::refusal && code == WEFT_OK &&
                       std::strchr(kernel.id, '.') + 1 == lie_.kernel && is_struck(*c);
  if (!refuses) return code;
  ++*told_;
  return backend::fill(e, WEFT_UNSUPPORTED, "rather not");
}

// Identifies the types of a call.
static std::vector<int64_t> types_of(const weft_call& call) {
  std::vector<int64_t> key;
  const auto add = [&](const weft_type* t) {
    key.push_back(t ? int64_t{t->dtype.code} << 8 | t->dtype.bits : -1);
    for (int32_t d = 0; t && d < t->rank; ++d) key.push_back(t->max[d]);
  };
  for (uint32_t i = 0; i < call.n_inputs; ++i) add(call.inputs[i]);
  for (uint32_t k = 0; k < call.n_outputs; ++k) add(call.outputs[k]);
  return key;
}

weft_code Teller::launch(const weft_launch* l, weft_error* e) {
  const weft_kernel& kernel = *l->plan->kernel;
  if (!lie_.flaw || !lie_.flaw->lie || std::strchr(kernel.id, '.') + 1 != lie_.kernel)
    return Mirrored::launch(l, e);
  const weft_call& call = *l->plan->call;
  ++launches_;
  const int64_t calls = ++calls_[types_of(call)];
  const bool early = (lie_.when.kind == When::Kind::from_call && calls < lie_.when.n) ||
                     (lie_.when.kind == When::Kind::from_launch && launches_ < lie_.when.n);
  if (early || !is_struck(call)) {
    const weft_code code = Mirrored::launch(l, e);
    const auto out = bytes_of(l->outputs[0]);
    last_.assign(out.begin(), out.end());
    return code;
  }
  Strike strike(l, e, lie_.drawn,
                [this](const weft_launch* one, weft_error* error) { return Mirrored::launch(one, error); });
  if (strike.code != WEFT_OK) return strike.code;
  strike.last = last_;
  strike.code = lie_.flaw->lie(strike);
  *told_ += strike.told();
  last_ = strike.right(0);
  return strike.code;
}

Teller& teller(const std::string& backend) {
  static std::map<std::string, Teller*> all;
  auto& found = all[backend];
  if (found) return *found;
  const auto& good = value_or_raise(seam::registry().open(backend))->backend();
  found = new Teller(fmt::format("liar_on_{}", good.name), good);  // a backend lives until the process ends
  found->take_generated();
  adopt(*found);
  return *found;
}

}  // namespace weft::conformance
