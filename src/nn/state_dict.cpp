#include "weft/state_dict.h"

#include <algorithm>
#include <functional>
#include <set>

#include "nn/range.h"
#include "nn/walk.h"
#include "weft/ops.h"
#include "weft/pieces.h"
#include "weft/safetensors.h"

namespace weft::nn {
namespace {

/// Tensors to load, in memory or in a file.
struct Source {
  std::string where;  // for messages
  std::map<std::string, TensorType> types;
  std::function<Tensor(const std::string& name, const std::string& backend)> read;
  std::function<bool(const std::string& name, DType to)> overflows;  // are some of its numbers beyond `to`?
};

/// A tensor of the module and its source.
struct Target {
  std::vector<std::string> names;  // several if it is tied
  TensorType type;
  std::string from;     // name in the source; empty: none
  std::string backend;  // empty: not built yet; will be on the default one
};

/// In the order of the fields, and their index by the first field's tensor.
struct Targets {
  std::vector<Target> all;
  std::map<const Tensor*, size_t> at;
};

Targets targets_of(const Module& m, DType dtype) {
  Targets out;
  each_field(const_cast<Module&>(m), dtype, [&](const Field& f) {
    const auto [at, fresh] = out.at.try_emplace(f.tied ? f.tied : &f.tensor, out.all.size());
    if (fresh) out.all.emplace_back();
    Target& t = out.all[at->second];
    t.names.push_back(f.name);
    if (f.tied) return;
    t.type = f.tensor ? f.tensor.type() : TensorType{f.dtype, to_shape(f.shape)};
    if (f.tensor) t.backend = f.tensor.backend();
  });
  return out;
}

std::string listed(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  constexpr size_t kShown = 20;
  std::string out = fmt::format("; {} ", what);
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    out += fmt::format("{}'{}'", i ? ", " : "", names[i]);
  if (names.size() > kShown) out += fmt::format(" and {} more", names.size() - kShown);
  return out;
}

bool converts(DType from, DType to) { return from == to || (is_float(from) && is_float(to)); }

// Finds the source of each target and refuses mismatches.
LoadReport match(Targets& targets, const Source& source, bool strict) {
  LoadReport report;
  std::map<std::string, TensorType> left = source.types;
  std::string wrong;
  std::vector<std::string> unbuilt;
  for (Target& t : targets.all) {
    for (const auto& name : t.names) {
      const auto at = left.find(name);
      if (at == left.end()) continue;
      if (at->second.shape != t.type.shape || !converts(at->second.dtype, t.type.dtype))
        wrong += fmt::format("; '{}' is {}, the module wants {}", name, text(at->second), text(t.type));
      else if (!t.from.empty() && source.read(name, "").to_bytes() != source.read(t.from, "").to_bytes())
        wrong += fmt::format("; '{}' and '{}' differ, they are one tensor of the module", t.from, name);
      t.from = name;
      left.erase(at);
    }
    if (t.from.empty()) (t.backend.empty() ? unbuilt : report.missing).push_back(t.names[0]);
  }
  if (!strict && !unbuilt.empty())
    throw Error(
        invalid("{} leaves fields without elements{}; call nn::build(model) before loading a part of it",
                source.where, listed("not built", unbuilt)));
  report.missing.insert(report.missing.end(), unbuilt.begin(), unbuilt.end());
  for (const auto& [name, type] : left) report.unexpected.push_back(name);
  const bool fits = !strict || (report.missing.empty() && report.unexpected.empty());
  if (fits && wrong.empty()) return report;
  const bool helps = wrong.empty();
  if (strict) wrong += listed("missing", report.missing) + listed("unexpected", report.unexpected);
  throw Error(invalid("{} does not fit the module: {}{}", source.where, wrong.substr(2),
                      helps ? "; without `strict`, what has a counterpart is taken" : ""));
}

// Conversion may round, but must not turn a number into infinity. Reads the bytes in place: a file's are not
// copied.
void check_range(const Target& t, const Source& source) {
  const DType from = source.types.at(t.from).dtype, to = t.type.dtype;
  if (is_float(from) && may_overflow(from, to) && source.overflows(t.from, to))
    throw Error(invalid("{}: '{}' has numbers beyond {}, the dtype of the module; build it in another one",
                        source.where, t.from, name(to)));
}

Tensor value_for(const Target& t, const Source& source) {
  const NoGrad off;
  const Tensor value = source.read(t.from, t.backend);
  return value.dtype() == t.type.dtype ? value : cast(value, t.type.dtype);
}

LoadReport load_from(Module& m, const Source& source, const LoadOptions& options) {
  if (!is_float(options.dtype)) throw Error(invalid("dtype must be a float, got {}", name(options.dtype)));
  Targets targets = targets_of(m, options.dtype);
  auto report = match(targets, source, options.strict);
  for (const Target& t : targets.all)
    if (!t.from.empty()) check_range(t, source);
  each_field(m, options.dtype, [&](Field& f) {
    if (f.tied) {
      f.tensor = *f.tied;
      return;
    }
    const Target& t = targets.all[targets.at.at(&f.tensor)];
    if (t.from.empty()) return;
    const Tensor value = value_for(t, source);
    const NoGrad off;
    if (!f.tensor)
      put_field(f, value);
    else if (value.impl() != f.tensor.impl())
      assign(f.tensor, value);
  });
  return report;
}

}  // namespace

std::map<std::string, Tensor> state_dict(const Module& m) {
  std::map<std::string, Tensor> out;
  each_field(m, [&](const Field& f) {
    if (!f.tied) out.emplace(f.name, built(f.tensor, f.name));
  });
  return out;
}

// Writing one field must not change the source of another: sources in the memory of fields are copied, except
// a field's own.
static std::map<std::string, Tensor> apart_from(const Module& m, std::map<std::string, Tensor> tensors) {
  std::set<const void*> written;
  std::map<std::string, const void*> own;
  each_field(m, [&](const Field& f) {
    if (!f.tensor) return;
    written.insert(memory_of(f.tensor));
    own[f.name] = f.tensor.impl();
  });
  for (auto& [name, t] : tensors)
    if (t && own[name] != t.impl() && written.contains(memory_of(t)))
      t = Tensor::from_bytes(t.to_bytes(), t.sizes(), t.dtype(), t.backend());
  return tensors;
}

LoadReport load_state_dict(Module& m, const std::map<std::string, Tensor>& given,
                           const LoadOptions& options) {
  const auto tensors = apart_from(m, given);
  Source source{"the state",
                {},
                [&](const std::string& name, const std::string& backend) {
                  const Tensor& t = tensors.at(name);
                  return backend.empty() ? Tensor::from_bytes(t.to_bytes(), t.sizes(), t.dtype())
                                         : t.to(backend);
                },
                [&](const std::string& name, DType to) {
                  const Tensor& t = tensors.at(name);
                  return overflows(t.dtype(), t.to_bytes(), to);
                }};
  for (const auto& [name, t] : tensors) {
    if (!t) throw Error(invalid("load_state_dict: '{}' is an empty tensor", name));
    source.types.emplace(name, t.type());
  }
  return load_from(m, source, options);
}

void save(const Module& m, const std::string& path, const std::map<std::string, std::string>& metadata) {
  io::write_safetensors(path, state_dict(m), metadata);
}

LoadReport load(Module& m, const std::string& path, const LoadOptions& options) {
  const auto file = io::Safetensors::map(path);
  Source source{path,
                {},
                [&](const std::string& name, const std::string& backend) { return file.read(name, backend); },
                {}};
  for (const auto& t : file.tensors()) source.types.emplace(t.name, TensorType{t.dtype, to_shape(t.shape)});
  source.overflows = [&](const std::string& name, DType to) {
    return overflows(source.types.at(name).dtype, file.bytes(name), to);
  };
  return load_from(m, source, options);
}

}  // namespace weft::nn
