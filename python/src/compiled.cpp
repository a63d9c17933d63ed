#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <pthread.h>

#include <mutex>
#include <unordered_map>

#include "eager/apply.h"
#include "eager/tape.h"
#include "eager/trace_state.h"
#include "python/src/convert.h"
#include "python/src/fields.h"
#include "python/src/module.h"
#include "weft/jit.h"
#include "weft/policy_scope.h"

// What weft.compile() is made of: a Python function, traced once for given types, and what must hold for its
// program to do what the function does. python/weft/compiled.py keeps one for each set of types.
namespace weft::python {
namespace {

using namespace nb::literals;

/// The memory outside of arguments that compiled functions work in. A weight may be packed or folded into a
/// program; when another compiled function writes it, that program is out of date.
struct Outside {
  struct Memory {
    uint64_t written = 0;  // in which run; 0: never
    uint64_t left = 0;     // after which run a field of a module got another tensor instead; 0: never
    int programs = 0;      // that work in it
  };
  std::mutex one_run;  // at a time: a step that trains writes what others read
  uint64_t runs = 0;
  std::unordered_map<const seam::Buffer*, Memory> all;
};
Outside& outside() {
  static Outside* const one = [] {
    // No other thread is left in a child, and what one held stays locked.
    ::pthread_atfork(nullptr, nullptr, [] { new (&outside().one_run) std::mutex; });
    return new Outside;
  }();
  return *one;
}
const seam::Buffer* memory_of(const Tensor& t) { return t.impl()->buffer.get(); }

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 4;
  std::string all;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    all += fmt::format("{}'{}'", i ? ", " : "", names[i]);
  if (names.size() > kMost) all += fmt::format(" and {} more", names.size() - kMost);
  return all;
}

// Has a backward() gone through its history? Nobody can go back through it again, so nothing is lost without
// it.
bool is_spent(const Tensor& t) {
  const eager::TensorImpl& impl = *t.impl();
  return impl.extra && impl.extra->node && impl.extra->node->claim.taken();
}

// Then it can be written by nobody, and a copy is as good. See make_read_only().
bool is_read_only(const Tensor& t) {
  return t.impl()->buffer->holders.load(std::memory_order_relaxed) == UINT8_MAX;
}

/// A function's program, with what it reads and writes outside of its arguments.
class Joined {
 public:
  Joined(const nb::object& function, const std::vector<InputSpec>& inputs, const std::vector<bool>& graded,
         CompileOptions options)
      : options_(std::move(options)) {
    options_.policy = current_policy();
    options_.take_captured = true;
    const Unlocked unlocked;
    std::unique_lock lock(outside().one_run, std::defer_lock);
    program_.emplace(compile(
        [&](const std::vector<Tensor>& in) {
          auto out = called(function, inputs, graded, in);
          see_outside();
          lock.lock();  // from here on memory that others may write is read
          keep_written();
          return out;
        },
        inputs, options_));
    check_shared();
    made_ = seen_ = outside().runs;
    count_programs(1);
  }
  ~Joined() {
    const Unlocked unlocked;  // what runs now may free memory of Python's
    const std::lock_guard lock(outside().one_run);
    count_programs(-1);
  }
  Joined(const Joined&) = delete;

  /// The results, or None where another compiled function has written what this program took for constant, or
  /// a module has another tensor instead of one that it reads.
  nb::object operator()(const nb::args& inputs) {
    std::vector<Tensor> in, out;
    for (const nb::handle o : inputs) in.push_back(tensor_in(o.ptr()));
    {
      const Unlocked unlocked;
      const std::lock_guard lock(outside().one_run);
      if (out_of_date()) return nb::none();
      out = (*program_)(in);
      if (!states_.empty()) {
        ++outside().runs;
        for (const Tensor& t : states_) {
          outside().all[memory_of(t)].written = outside().runs;
          // A backward() that saved it must not go on with other elements.
          t.impl()->buffer->version.fetch_add(1, std::memory_order_relaxed);
        }
      }
    }
    return nb::steal(to_tuple(out));
  }

  Compiled& program() { return *program_; }

 private:
  std::vector<Tensor> called(const nb::object& function, const std::vector<InputSpec>& inputs,
                             const std::vector<bool>& graded, const std::vector<Tensor>& in) {
    const Locked locked;
    std::vector<int32_t> before;
    nb::list arguments;
    for (size_t i = 0; i < in.size(); ++i) {
      if (graded[i]) Tensor(in[i]).requires_grad(true);
      before.push_back(in[i].impl()->traced_value);
      arguments.append(nb::steal(to_object(in[i])));
    }
    std::vector<Tensor> out;
    for (const nb::handle o : nb::borrow<nb::iterable>(function(arguments)))
      out.push_back(nb::cast<Tensor>(o));
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i].impl()->traced_value != before[i])
        throw Error(
            invalid("weft.compile: the function writes to its argument '{}', which a program can't do: "
                    "return the new value",
                    inputs[i].name));
      if (in[i].grad())
        throw Error(
            invalid("weft.compile: backward() left a gradient at the argument '{}', which a program can't "
                    "do: in the function, "
                    "begin with x = x.detach().requires_grad_() and return x.grad",
                    inputs[i].name));
    }
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].requires_grad() && !is_spent(out[i]))
        throw Error(fail(Code::unsupported,
                         "weft.compile: result {} requires a gradient, and a program records none: call "
                         "backward() in the function, "
                         "or compile under weft.no_grad(), or return detach()",
                         i));
    return out;
  }

  // While the trace is being recorded.
  void see_outside() {
    std::vector<std::string> graded;
    for (const auto& c : eager::active_trace()->captured) {
      if (c.tensor.grad()) graded.push_back(c.name);
      (c.now == c.before ? weights_ : states_).push_back(c.tensor);
    }
    if (!graded.empty())
      throw Error(
          invalid("weft.compile: backward() left gradients at {}, which a program can't do: take the "
                  "optimiser's step in the "
                  "function too, or return the gradients and clear them (grad = None)",
                  listed(graded)));
  }

  // What another compiled function writes is no constant here, but a state that stays as it is.
  void keep_written() {
    eager::TraceState& trace = *eager::active_trace();
    std::erase_if(weights_, [&](const Tensor& t) {
      const auto at = outside().all.find(memory_of(t));
      if (at == outside().all.end() || at->second.written == 0) return false;
      const ir::Value now = value_or_raise(trace.value_of(t));
      trace.rebind(t, trace.graph.reshape(now, t.shape()));
      kept_.push_back(t);
      return true;
    });
  }

  bool out_of_date() {
    if (seen_ == outside().runs) return false;
    seen_ = outside().runs;
    const auto written = [&](const Tensor& t) { return outside().all[memory_of(t)].written > made_; };
    const auto left = [&](const Tensor& t) { return outside().all[memory_of(t)].left > made_; };
    return std::ranges::any_of(weights_, written) || std::ranges::any_of(weights_, left) ||
           std::ranges::any_of(states_, left) || std::ranges::any_of(kept_, left);
  }

  void count_programs(int change) {
    for (const auto* list : {&weights_, &states_, &kept_})
      for (const Tensor& t : *list)
        if ((outside().all[memory_of(t)].programs += change) == 0) outside().all.erase(memory_of(t));
  }

  // A program that worked in copies would not see what others write, nor they what it does.
  void check_shared() const {
    std::vector<std::string> apart;
    for (const auto* list : {&weights_, &states_, &kept_})
      for (const Tensor& t : *list)
        if (!program_->shares(t) && element_count(t.sizes()) > 0 && !(list == &weights_ && is_read_only(t)))
          apart.push_back(t.name().empty() ? text(t.type()) : t.name());
    if (!apart.empty())
      throw Error(fail(Code::unsupported,
                       "weft.compile: the program can't work in the memory of {}, which the function reads "
                       "from outside: it is on another "
                       "device, has strides, may only be read, or 254 programs use it; clone() makes a "
                       "tensor that can be used, and a size that is a symbol "
                       "(dynamic_shapes) makes one program of many",
                       listed(apart)));
  }

  CompileOptions options_;
  std::optional<Compiled> program_;
  std::vector<Tensor> weights_, states_, kept_;
  uint64_t made_ = 0, seen_ = 0;
};

// What a program depends on besides the form of its arguments, as bytes that can be compared: the policy,
// whether gradients are recorded, and of each tensor its device, dtype, sizes and whether it requires a
// gradient. The sizes of one with symbols are compared elsewhere.
nb::bytes signature_of(const nb::list& tensors, const nb::list& symbols) {
  const Policy policy = current_policy();
  std::string all = {static_cast<char>(policy.fallback), static_cast<char>(policy.decompose),
                     static_cast<char>(policy.determinism), static_cast<char>(policy.precision),
                     static_cast<char>(eager::grad_enabled())};
  const auto add = [&all](const void* at, size_t bytes) { all.append(static_cast<const char*>(at), bytes); };
  for (size_t i = 0; i < tensors.size(); ++i) {
    const eager::TensorImpl& impl = *tensor_in(nb::handle(tensors[i]).ptr()).impl();
    if (impl.traced)
      throw Error(
          invalid("weft.compile: an argument is of a trace that has ended; return it as a result instead"));
    const bool symbolic = i < symbols.size() && !nb::handle(symbols[i]).is_none();
    const char about[] = {static_cast<char>(impl.dtype), static_cast<char>(impl.requires_grad),
                          static_cast<char>(impl.rank), static_cast<char>(symbolic)};
    add(&impl.device, sizeof impl.device), add(about, sizeof about);
    if (!symbolic) add(impl.dims, impl.rank * sizeof impl.dims[0]);
  }
  return nb::bytes(all.data(), all.size());
}

}  // namespace

void field_left(const Tensor& before) {
  if (!before || before.impl()->traced) return;
  const Unlocked unlocked;
  const std::lock_guard lock(outside().one_run);
  if (const auto at = outside().all.find(memory_of(before)); at != outside().all.end())
    at->second.left = ++outside().runs;
}

void bind_compiled(nb::module_& m) {
  m.def("_signature", signature_of, "tensors"_a, "symbols"_a);
  m.def("_is_tracing", [] { return eager::active_trace() != nullptr; });
  nb::class_<Joined>(m, "_Joined")
      .def(
          "__init__",
          [](Joined* joined, const nb::object& function, const nb::list& inputs, const std::string& name,
             const std::string& backend, bool fuse) {
            std::vector<InputSpec> specs;
            std::vector<bool> graded;
            for (const nb::handle i : inputs) {
              specs.push_back(
                  {nb::cast<std::string>(i[0]),
                   {dtype_from(nb::object(i[1]).ptr()), dims_from(nb::object(i[2]).ptr(), "a shape")}});
              graded.push_back(nb::cast<bool>(i[3]));
            }
            new (joined) Joined(function, specs, graded, {.name = name, .backend = backend, .fuse = fuse});
          },
          "function"_a, "inputs"_a, "name"_a, "backend"_a, "fuse"_a)
      .def("__call__", &Joined::operator())
      .def_prop_ro("program", &Joined::program, nb::rv_policy::reference_internal);
}

}  // namespace weft::python
