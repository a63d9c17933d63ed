#include "lab/kernels/call_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace weft::lab {
namespace {

using nlohmann::json;

json attr_json(const Attr& a) {
  if (const auto* i = std::get_if<int64_t>(&a.value)) return *i;
  if (const auto* s = std::get_if<std::string>(&a.value)) return *s;
  if (const auto* d = std::get_if<double>(&a.value); d && std::isfinite(*d)) return *d;
  if (const auto* shape = std::get_if<Shape>(&a.value)) {
    json list = json::array();
    for (const auto& dim : *shape) list.push_back(dim.value());
    return list;
  }
  throw Error(invalid("attribute {} = {}: JSON has no such value", a.name, weft::text(a.value)));
}

AttrValue attr_from(const json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_array()) {
    const auto list = value.get<std::vector<int64_t>>();
    return to_shape(std::span<const int64_t>(list));
  }
  return value.get<std::string>();
}

}  // namespace

json to_json(const conformance::Ask& ask) {
  json inputs = json::array(), attrs = json::object();
  for (size_t i = 0; i < ask.inputs.size(); ++i) {
    const auto& type = ask.inputs[i].type;
    if (ask.absent >> i & 1)
      inputs.push_back(nullptr);
    else
      inputs.push_back({{"dtype", name(type.dtype)},
                        {"shape", std::vector<int64_t>(type.shape.begin(), type.shape.end())}});
    if (ask.constants >> i & 1) inputs.back()["constant"] = ask.one_size ? "one size" : "several sizes";
  }
  for (const auto& a : ask.attrs) attrs[a.name] = attr_json(a);
  return {{"op", ask.op}, {"inputs", inputs}, {"attrs", attrs}};
}

conformance::Ask ask_from(const json& j) {
  conformance::Ask ask{.op = j.at("op").get<std::string>()};
  for (const auto& i : j.at("inputs")) {
    seam::ConcreteType type{DType::u8, {}};
    if (i.is_null()) {
      ask.absent |= uint64_t{1} << ask.inputs.size();
    } else {
      const auto dtype = dtype_from_name(i.at("dtype").get<std::string>());
      if (!dtype) throw Error(invalid("no dtype is named {}", i.at("dtype").dump()));
      const auto shape = i.at("shape").get<std::vector<int64_t>>();
      type = {*dtype, IntList(shape.begin(), shape.end())};
      if (const auto constant = i.find("constant"); constant != i.end())
        ask.constants |= uint64_t{1} << ask.inputs.size(), ask.one_size = *constant == "one size";
    }
    ask.inputs.push_back({std::move(type), {}});
  }
  for (const auto& [name, value] : j.at("attrs").items()) ask.attrs.push_back({name, attr_from(value)});
  return ask;
}

std::string text(const conformance::Ask& ask) {
  std::string s = ask.op;
  for (size_t i = 0; i < ask.inputs.size(); ++i)
    if (!(ask.absent >> i & 1))
      s += (ask.constants >> i & 1 ? " constant " : " ") + seam::text(ask.inputs[i].type);
  for (const auto& a : ask.attrs) s += fmt::format(" {}={}", a.name, weft::text(a.value));
  return s;
}

}  // namespace weft::lab
