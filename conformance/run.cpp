#include "conformance/run.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <ranges>
#include <set>

#include "eager/apply.h"
#include "weft/backends.h"

namespace weft::conformance {
namespace {

// The pool hands out the buffer that was freed last, so the results will be written to these.
void poison(const ir::OpDef& op, const std::vector<AttrValue>& attrs, const std::vector<Array>& inputs,
            const std::string& backend) {
  const auto results = value_or_raise(infer_op(op, attrs, inputs));
  std::vector<Tensor> held;
  for (const auto& t : results) {
    Dims shape;
    for (const Dim d : t.shape) shape.push_back(d.value());
    const std::vector<std::byte> bytes(static_cast<size_t>(count(shape)) * byte_size(t.dtype),
                                       std::byte{0xff});
    held.push_back(Tensor::from_bytes(bytes, shape, t.dtype, backend));
  }
}

Array cycled(const Array& like, const std::vector<Real>& from, size_t first) {
  Array a{like.dtype, like.shape, {}};
  for (size_t i = 0; i < like.v.size(); ++i)
    a.v.push_back(from.empty() ? Real{0} : round_to(a.dtype, from[(i + first) % from.size()]));
  return a;
}

bool same_number(Real a, Real b) { return std::isnan(a) ? std::isnan(b) : a == b; }

}  // namespace

Result<std::vector<TensorType>> infer_op(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                                         const std::vector<Array>& inputs) {
  std::vector<TensorType> types;
  std::vector<const TensorType*> pointers;
  types.reserve(inputs.size());
  for (const auto& a : inputs) types.push_back(type_of(a)), pointers.push_back(&types.back());
  return op.infer(ir::Types(pointers), attrs);
}

Outcome run_op(const ir::OpDef& op, const std::vector<AttrValue>& attrs, const std::vector<Array>& inputs,
               const std::string& backend) {
  Outcome out;
  std::vector<Tensor> in, results(op.n_outputs);
  std::vector<const Tensor*> pointers;
  in.reserve(inputs.size());
  const OnBackend on(backend);  // for ops without operands
  try {
    for (const auto& a : inputs) in.push_back(to_tensor(a, backend)), pointers.push_back(&in.back());
    poison(op, attrs, inputs, backend);
    reset_ledger();
    eager::apply(op, pointers, attrs, results);
    for (const auto& t : results) out.outputs.push_back(from_tensor(t));
    out.ledger = ledger_rows();
  } catch (const Error& e) {
    if (e.status().code() != Code::unsupported) throw;
    out.refused = e.status().message();
    out.outputs.clear();
  }
  return out;
}

std::vector<std::string> computing_backends(const std::string& plugin_folder) {
  std::vector<std::filesystem::path> plugins;
  if (std::filesystem::exists(plugin_folder))
    for (const auto& file : std::filesystem::directory_iterator(plugin_folder)) {
      const auto name =
          file.path().stem().string();  // tests/plugins/ holds good_* and bad_*, which compute nothing
      const bool computes = !name.starts_with("good_") && !name.starts_with("bad_");
      if (file.path().extension() == ".so" && computes && name != "emulated")  // that has tests of its own
        plugins.push_back(file.path());
    }
  if (const char* own = std::getenv("WEFT_PLUGINS"))  // backends elsewhere, separated by ':'
    for (const auto part : std::views::split(std::string_view(own), ':'))
      if (!part.empty()) plugins.emplace_back(std::string(part.begin(), part.end()));
  std::set<std::string> built;
  for (const auto& path : plugins) {
    const auto name = path.stem().string();
    if (!is_backend_available(name)) load_backend(path);
    built.insert(name);
  }
  // Not those that other tests in this process have loaded, such as liars.
  std::vector<std::string> all;
  for (const auto& b : get_backends())
    if (b.origin == "built in" || built.contains(b.name))
      for (const auto& d : b.devices)
        if (d.computes) all.push_back(d.name);
  return all;
}

std::vector<Fault> planted_faults(const Bounded& right, const std::vector<Array>& inputs,
                                  const Array& stale) {
  const Array& y = right.value;
  std::vector<Fault> faults;
  faults.push_back({"zero", cycled(y, {0}, 0)});
  faults.push_back({"constant", cycled(y, {y.v.empty() || !std::isfinite(y.v[0]) ? Real{1} : y.v[0]}, 0)});
  if (!inputs.empty()) faults.push_back({"copied input", cycled(y, inputs[0].v, 0)});
  faults.push_back({"shifted by one", cycled(y, y.v, 1)});
  faults.push_back({"stale", cycled(y, stale.v, 0)});
  for (auto& f : faults) {
    f.same = true;
    for (size_t i = 0; i < y.v.size(); ++i)
      f.same = f.same && same_number(f.output.v[i], round_to(y.dtype, y.v[i]));
  }
  return faults;
}

}  // namespace weft::conformance
