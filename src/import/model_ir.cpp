#include "import/model_ir.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "base/dims.h"
#include "base/element.h"
#include "base/shown.h"
#include "formats/json.h"

namespace weft::importer {
namespace {

using nlohmann::json;

constexpr size_t kMostAxes = 8;
constexpr int64_t kMostElements = int64_t{1} << 48;  // far from where products of sizes overflow
constexpr int64_t kMostSymbol = int64_t{1} << 31;
constexpr size_t kMostNesting = 12;    // of an attribute's lists
constexpr int64_t kMostPlaces = 4096;  // of an operand that is a list of tensors

struct TorchDType {
  const char* name;
  DType dtype;
};
constexpr TorchDType kTorchDTypes[] = {
    {"float32", DType::f32},          {"float64", DType::f64}, {"float16", DType::f16},
    {"bfloat16", DType::bf16},        {"int64", DType::i64},   {"int32", DType::i32},
    {"bool", DType::boolean},         {"uint8", DType::u8},    {"int8", DType::i8},
    {"uint32", DType::u32},           {"uint64", DType::u64},  {"float8_e5m2", DType::f8e5m2},
    {"float8_e4m3fn", DType::f8e4m3},
};

// Python writes NaN, Infinity and -Infinity, which are no JSON. Here they become texts, which Call reads as
// numbers again.
std::string with_quoted_numbers(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\' && i + 1 < text.size()) out += text[i++];
    if (c == '"') in_string = !in_string;
    size_t length = 0;
    if (!in_string)
      for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
        if (text.substr(i, word.size()) == word) length = word.size();
    if (length > 0) {
      out += fmt::format("\"{}\"", text.substr(i, length));
      i += length - 1;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool in_symbol(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

constexpr size_t kLongestSymbol = 64;  // powers of a longer one would make a long text of a short one

// "s0**3" -> "s0*s0*s0", for powers from 2 to 4 of a symbol; others stay as they are.
std::string without_powers(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_power = text.substr(i).starts_with("**") && i + 2 < text.size() && text[i + 2] >= '2' &&
                          text[i + 2] <= '4' && (i + 3 == text.size() || !in_symbol(text[i + 3]));
    size_t at = out.size();
    while (is_power && at > 0 && in_symbol(out[at - 1])) --at;
    const std::string symbol = is_power ? out.substr(at) : "";
    if (symbol.empty() || symbol.size() > kLongestSymbol) {
      out += text[i];
      continue;
    }
    for (char n = '2'; n <= text[i + 2]; ++n) out += '*' + symbol;
    i += 2;
  }
  return out;
}

// sympy's text of a size in the words of parse_dim: "2*s0 - 1" -> "2*s0+-1".
std::string dimension_text(std::string_view given) {
  const std::string text = without_powers(given);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '-' && !out.empty() &&
        std::string_view("+*/(,-").find(out.back()) == std::string_view::npos)
      out += '+';
    out += text[i];
  }
  return out;
}

/// Reads the parts of a file. The first thing that is wrong is kept, and what Weft does not have is
/// collected.
class Reader {
 public:
  explicit Reader(std::string where) : where_(std::move(where)) {}

  Result<ModelIr> read(const json& root) {
    ModelIr ir;
    ir.name = optional_text(root, "model_name", "model");
    ir.pytorch = optional_text(root, "pytorch_version", "");
    WEFT_CHECK(read_symbols(root, ir));
    WEFT_CHECK(read_weights(root, ir));
    WEFT_TRY(ir.inputs, tensors(root, "graph_inputs", ""));
    WEFT_TRY(ir.outputs, tensors(root, "graph_outputs", ""));
    WEFT_TRY(const json* nodes, list(root, "nodes", ""));
    for (size_t i = 0; i < nodes->size(); ++i) {
      WEFT_TRY(auto node, read_node((*nodes)[i], fmt::format("nodes[{}]", i)));
      ir.nodes.push_back(std::move(node));
    }
    if (unknown_.empty()) return ir;
    std::string lines;
    for (const auto& line : unknown_) lines += "\n  " + line;
    return fail(Code::unsupported, "{}: dtypes that Weft does not have:{}", where_, lines);
  }

 private:
  Status wrong(const std::string& at, std::string_view wanted, const json* got) const {
    return fail(Code::corrupt, "{}: {}: wanted {}, got {}", where_, at, wanted,
                got ? shown(formats::json_text(*got), 60) : "nothing");
  }
  static std::string path(const std::string& at, const char* name) {
    return at.empty() ? name : at + "." + name;
  }
  static const json* member(const json& object, const char* name) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
  }

  Result<std::string> string(const json& object, const char* name, const std::string& at) const {
    const json* found = member(object, name);
    if (!found || !found->is_string() || found->get_ref<const std::string&>().empty())
      return wrong(path(at, name), "a text", found);
    return found->get<std::string>();
  }
  static std::string optional_text(const json& object, const char* name, const char* otherwise) {
    const json* found = member(object, name);
    return found && found->is_string() ? found->get<std::string>() : otherwise;
  }
  Result<const json*> list(const json& object, const char* name, const std::string& at) const {
    const json* found = member(object, name);
    if (!found || !found->is_array()) return wrong(path(at, name), "a list", found);
    return found;
  }
  Result<int64_t> whole(const json* value, int64_t least, int64_t most, const std::string& at) const {
    const bool integer = value && value->is_number_integer();
    const bool beyond =
        integer && value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{INT64_MAX};
    if (!integer || beyond || value->get<int64_t>() < least || value->get<int64_t>() > most)
      return wrong(at, fmt::format("a whole number from {} to {}", least, most), value);
    return value->get<int64_t>();
  }

  Status read_symbols(const json& root, ModelIr& ir) const {
    const json* all = member(root, "symbols");
    if (!all) return {};
    if (!all->is_object()) return wrong("symbols", "an object", all);
    for (const auto& [name, range] : all->items()) {
      const std::string at = "symbols." + shown(name);
      if (!range.is_array() || range.size() != 2) return wrong(at, "[least, most]", &range);
      WEFT_TRY(const int64_t least, whole(&range[0], 0, kMostSymbol, at));
      WEFT_TRY(const int64_t most, whole(&range[1], least, kMostSymbol, at));
      const Symbol symbol{name, least, most};
      WEFT_CHECK(check_symbol(symbol).at(where_ + ": " + at));
      ir.symbols.push_back(symbol);
    }
    symbols_ = ir.symbols;
    return {};
  }

  Result<Shape> shape(const json& tensor, const std::string& at) const {
    WEFT_TRY(const json* sizes, list(tensor, "shape", at));
    if (sizes->size() > kMostAxes)
      return wrong(at + ".shape", fmt::format("up to {} axes", kMostAxes), sizes);
    Shape shape;
    int64_t elements = 1;
    for (const json& size : *sizes) {
      Dim dim = 0;
      if (size.is_string()) {
        WEFT_TRY(dim, dimension(size.get_ref<const std::string&>(), at));
      } else {
        WEFT_TRY(const int64_t n, whole(&size, 0, kMostElements, at + ".shape"));
        dim = n;
      }
      if (__builtin_mul_overflow(elements, std::max<int64_t>(1, dim.max()), &elements) ||
          elements > kMostElements)
        return wrong(at + ".shape", fmt::format("up to {} elements", kMostElements), sizes);
      shape.push_back(dim);
    }
    return shape;
  }
  Result<Dim> expression(const std::string& text, const std::string& at) const {
    auto dim = read_dim(dimension_text(text), symbols_);
    if (!dim.ok())
      return fail(Code::corrupt, "{}: {}: {}; the file's \"symbols\" name {}", where_, at,
                  dim.status().message(), symbols_.empty() ? "none" : "others");
    return dim;
  }
  Result<Dim> dimension(const std::string& text, const std::string& at) const {
    WEFT_TRY(const Dim dim, expression(text, at + ".shape"));
    if (dim.min() < 0)
      return fail(Code::corrupt, "{}: {}.shape: '{}' may be {}, which is no size", where_, at, shown(text),
                  dim.min());
    return dim;
  }

  Result<TensorInfo> tensor(const json& value, const std::string& at, const std::string& node) {
    if (!value.is_object()) return wrong(at, "a tensor", &value);
    TensorInfo info;
    WEFT_TRY(info.name, string(value, "name", at));
    WEFT_TRY(info.type.shape, shape(value, at));
    WEFT_TRY(const std::string dtype, string(value, "dtype", at));
    if (const auto known = dtype_from_torch(dtype)) {
      info.type.dtype = *known;
    } else {
      unknown_.insert(fmt::format(
          "{}: {}", node.empty() ? "tensor '" + shown(info.name) + "'" : "node '" + shown(node) + "'",
          shown(dtype, 60)));
    }
    if (const json* producer = member(value, "producer_node"); producer && !producer->is_null()) {
      WEFT_TRY(info.producer, string(value, "producer_node", at));
      if (const json* which = member(value, "producer_output_idx")) {
        WEFT_TRY(info.producer_output, whole(which, 0, INT32_MAX, at + ".producer_output_idx"));
      }
    }
    info.arg = optional_text(value, "arg", "");
    if (const json* place = member(value, "place")) {
      WEFT_TRY(info.place, whole(place, 0, kMostPlaces, at + ".place"));
    }
    return info;
  }
  Result<std::vector<TensorInfo>> tensors(const json& object, const char* name, const std::string& at,
                                          const std::string& node = {}, bool may_be_missing = false) {
    WEFT_TRY(const json* all, list(object, name, at));
    std::vector<TensorInfo> out;
    for (size_t i = 0; i < all->size(); ++i) {
      if ((*all)[i].is_null() && may_be_missing) {
        out.emplace_back();
        continue;
      }
      WEFT_TRY(auto one, tensor((*all)[i], fmt::format("{}[{}]", path(at, name), i), node));
      out.push_back(std::move(one));
    }
    return out;
  }

  Result<Arg> arg(const json& value, const std::string& at, size_t depth = 0) const {
    if (value.is_null()) return Arg{};
    if (value.is_boolean()) return Arg{value.get<bool>()};
    if (value.is_string()) return Arg{value.get<std::string>()};
    if (value.is_number_float()) return Arg{value.get<double>()};
    if (value.is_number_integer()) {
      WEFT_TRY(const int64_t n, whole(&value, INT64_MIN, INT64_MAX, at));
      return Arg{n};
    }
    if (const json* dim = member(value, "dim"); dim && dim->is_string()) {
      WEFT_TRY(const Dim size, expression(dim->get_ref<const std::string&>(), at));
      return size.is_const() ? Arg{size.value()} : Arg{size};
    }
    if (!value.is_array() || depth == kMostNesting) return wrong(at, "a number, a text or a list", &value);
    std::vector<Arg> items;
    for (const json& item : value) {
      WEFT_TRY(auto one, arg(item, at, depth + 1));
      items.push_back(std::move(one));
    }
    return Arg{std::move(items)};
  }

  Result<NodeInfo> read_node(const json& value, const std::string& at) {
    NodeInfo node;
    WEFT_TRY(node.name, string(value, "name", at));
    WEFT_TRY(node.op, string(value, "op_type", at));
    WEFT_TRY(node.inputs, tensors(value, "inputs", at, node.name));
    WEFT_TRY(node.outputs, tensors(value, "outputs", at, node.name, true));
    const json* attrs = member(value, "attrs");
    if (!attrs) return node;
    if (!attrs->is_object()) return wrong(at + ".attrs", "an object", attrs);
    for (const auto& [name, given] : attrs->items()) {
      WEFT_TRY(auto one, arg(given, at + ".attrs." + shown(name)));
      node.attrs.emplace(name, std::move(one));
    }
    return node;
  }

  Status read_weights(const json& root, ModelIr& ir) {
    WEFT_TRY(auto weights, tensors(root, "weights", ""));
    for (auto& w : weights) {
      const auto [at, is_new] = ir.weights.emplace(w.name, w.type);
      if (!is_new && !(at->second == w.type))  // tied: listed once for each of its names
        return fail(Code::corrupt, "{}: weight '{}' is {} and {}", where_, shown(w.name),
                    weft::text(at->second), weft::text(w.type));
    }
    if (const json* names = member(root, "weight_name_mapping")) {
      if (!names->is_object()) return wrong("weight_name_mapping", "an object", names);
      for (const auto& [placeholder, name] : names->items()) {
        if (!name.is_string() || !ir.weights.contains(name.get_ref<const std::string&>()))
          return wrong("weight_name_mapping." + shown(placeholder), "the name of a weight", &name);
        ir.placeholders.emplace(placeholder, name.get<std::string>());
      }
    }
    const json* constants = member(root, "constants");
    if (!constants) return {};
    if (!constants->is_object()) return wrong("constants", "an object", constants);
    for (const auto& [name, value] : constants->items()) WEFT_CHECK(read_constant(name, value, ir));
    return {};
  }
  Status read_constant(const std::string& name, const json& value, ModelIr& ir) const {
    const std::string at = "constants." + shown(name);
    WEFT_TRY(const std::string spelt, string(value, "dtype", at));
    const auto dtype = dtype_from_torch(spelt);
    const auto type = ir.weights.find(name);
    if (type == ir.weights.end()) return {};  // nothing reads it
    if (!dtype || *dtype != type->second.dtype)
      return fail(Code::corrupt, "{}: {}: it is {}, but the weight of this name {}", where_, at, shown(spelt),
                  weft::text(type->second));
    Constant constant{*dtype, {}};
    const json* data = member(value, "data");
    if (!data) return wrong(at + ".data", "numbers", data);
    WEFT_CHECK(elements(*data, type->second.shape, 0, constant, at + ".data"));
    ir.constants.emplace(name, std::move(constant));
    return {};
  }
  // Nested lists, as deep as the shape.
  Status elements(const json& data, const Shape& shape, size_t axis, Constant& out,
                  const std::string& at) const {
    if (axis < shape.size()) {
      if (!data.is_array() || !(Dim(data.size()) == shape[axis]))
        return wrong(at, fmt::format("lists of the shape {}", weft::text(shape)), &data);
      for (const json& item : data) WEFT_CHECK(elements(item, shape, axis + 1, out, at));
      return {};
    }
    std::byte element[sizeof(double)];
    if (data.is_number_integer() || data.is_boolean()) {
      int64_t n = data.is_boolean() && data.get<bool>();
      if (!data.is_boolean()) {
        WEFT_TRY(n, whole(&data, INT64_MIN, INT64_MAX, at));
      }
      store_element(out.dtype, element, 0, n);
    } else if (const auto number = real(data)) {
      store_element(out.dtype, element, 0, *number);
    } else {
      return wrong(at, "a number", &data);
    }
    out.bytes.append(reinterpret_cast<const char*>(element), byte_size(out.dtype));
    return {};
  }
  static std::optional<double> real(const json& value) {
    if (value.is_number()) return value.get<double>();
    return value.is_string() ? number_from_text(value.get_ref<const std::string&>()) : std::nullopt;
  }

  std::string where_;
  mutable std::vector<Symbol> symbols_;
  std::set<std::string> unknown_;
};

}  // namespace

std::optional<double> number_from_text(std::string_view text) {
  if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity" || text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity" || text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::optional<DType> dtype_from_torch(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (const auto& known : kTorchDTypes)
    if (name == known.name) return known.dtype;
  return std::nullopt;
}

std::string text(const Arg& arg) {
  struct Print {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return fmt::format("'{}'", v.substr(0, 40)); }
    std::string operator()(Dim v) const { return v.text(); }
    std::string operator()(const std::vector<Arg>& v) const {
      std::string out = "[";
      for (size_t i = 0; i < v.size() && i < 8; ++i) out += (i ? ", " : "") + text(v[i]);
      return out + (v.size() > 8 ? ", ...]" : "]");
    }
  };
  return std::visit(Print(), arg.value);
}

Result<ModelIr> parse_model_ir(std::string_view text, const std::string& where) {
  WEFT_TRY(const json root, formats::parse_json_object(with_quoted_numbers(text), where));
  return Reader(where).read(root);
}

}  // namespace weft::importer
