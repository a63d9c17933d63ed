#include "nn/hf_object.h"

#include <algorithm>
#include <limits>

#include "formats/json.h"

namespace weft::nn {

using nlohmann::json;

bool Object::has(const char* name) const {
  asked_.insert(name);
  return root_.contains(name) && !root_[name].is_null();
}

int64_t Object::size(const char* name, std::optional<int64_t> otherwise, int64_t least, int64_t most) const {
  const json* v = find(name, otherwise.has_value());
  if (!v) return *otherwise;
  if (!v->is_number_integer() || *v < least || *v > most)
    throw bad(name, fmt::format("wanted {} to {}", least, most));
  return v->get<int64_t>();
}

double Object::positive(const char* name, std::optional<double> otherwise) const {
  const json* v = find(name, otherwise.has_value());
  if (!v) return *otherwise;
  if (!v->is_number() || !(*v > 0)) throw bad(name, "wanted a number above 0");
  return v->get<double>();
}

double Object::between(const char* name, double least, double most) const {
  const json* v = find(name, false);
  if (!v->is_number() || !(*v >= least && *v <= most))
    throw bad(name, fmt::format("wanted a number from {} to {}", least, most));
  return v->get<double>();
}

bool Object::flag(const char* name, bool otherwise) const {
  const json* v = find(name, true);
  if (v && !v->is_boolean()) throw bad(name, "wanted true or false");
  return v ? v->get<bool>() : otherwise;
}

std::string Object::word(const char* name, std::optional<std::string> otherwise) const {
  const json* v = find(name, otherwise.has_value());
  if (v && !v->is_string()) throw bad(name, "wanted text");
  return v ? v->get<std::string>() : *otherwise;
}

Object Object::object(const char* name) const {
  const json* v = find(name, false);
  if (!v->is_object()) throw bad(name, "wanted an object");
  return {path_ + ": " + name, *v};
}

std::vector<int32_t> Object::tokens(const char* name) const {
  std::vector<int32_t> all;
  const json* v = find(name, true);
  if (!v) return all;
  for (const json& id : v->is_array() ? *v : json::array({*v})) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<int32_t>::max())
      throw bad(name, "wanted tokens");
    all.push_back(id.get<int32_t>());
  }
  return all;
}

std::vector<std::string> Object::words(const char* name) const {
  std::vector<std::string> all;
  const json* v = find(name, true);
  if (!v) return all;
  for (const json& text : v->is_array() ? *v : json::array({*v})) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty())
      throw bad(name, "wanted texts that are not empty");
    all.push_back(text.get<std::string>());
  }
  return all;
}

void Object::refuse_the_rest(const std::string& what,
                             std::initializer_list<std::span<const Harmless>> harmless) const {
  for (const auto& [name, value] : root_.items()) {
    if (value.is_null() || asked_.contains(name)) continue;
    const Harmless* known = nullptr;
    for (const auto& list : harmless)
      for (const Harmless& h : list)
        if (name == h.name) known = &h;
    if (!known)
      throw unsupported(name.c_str(),
                        fmt::format("it is not known what it means for {}; remove it from the file if the "
                                    "model computes the same without it",
                                    what));
    if (known->only && value != json::parse(known->only))
      throw unsupported(name.c_str(), fmt::format("supported is only {}", known->only));
  }
}

Error Object::unsupported(const char* name, const std::string& wanted) const {
  return Error(fail(Code::unsupported, "{}: field '{}' is {}; {}", path_, name,
                    formats::json_text(root_.value(name, json())), wanted));
}

const json* Object::find(const char* name, bool optional) const {
  if (has(name)) return &root_[name];
  if (!optional) throw Error(fail(Code::corrupt, "{}: field '{}' is missing", path_, name));
  return nullptr;
}

Error Object::bad(const char* name, const std::string& wanted) const {
  return Error(
      fail(Code::corrupt, "{}: field '{}' is {}, {}", path_, name, formats::json_text(root_[name]), wanted));
}

}  // namespace weft::nn
