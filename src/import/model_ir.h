#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/attr.h"
#include "weft/status.h"

// model_ir.json, as PyPI's pytorch-ir writes what torch.export made of a model: an ATen graph without
// weights.
namespace weft::importer {

/// A value of a node's attributes, as JSON holds it. std::monostate is null; a Dim, {"dim": "s0 + 1"} in the
/// file, an integer that symbols decide.
struct Arg {
  std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<Arg>, Dim> value;
};
/// "[1, \"same\", None]", for messages; long ones are cut.
std::string text(const Arg& arg);

/// A tensor where it is made or read. Readers of a node's result name the node and which of its tensors.
struct TensorInfo {
  std::string name;
  TensorType type;
  std::string producer;  ///< empty: a graph input's or a weight's placeholder, or where a tensor is made
  int64_t producer_output = 0;
  /// Of a node's input: the parameter of the op that it is given for, and its place in one that is a list.
  /// Empty in files that do not say it.
  std::string arg;
  int64_t place = 0;
};

struct NodeInfo {
  std::string name;
  std::string op;                           ///< "aten.conv2d.default"
  std::vector<TensorInfo> inputs, outputs;  ///< a result without a name is one that the node does not make
  std::map<std::string, Arg, std::less<>> attrs;
};

/// A tensor that the model's code held, not its state_dict.
struct Constant {
  DType dtype = DType::f32;
  std::string bytes;
};

struct ModelIr {
  std::string name;
  std::string pytorch;  ///< the version that exported it
  std::vector<TensorInfo> inputs, outputs;
  std::map<std::string, TensorType, std::less<>> weights;        ///< by the name that a state_dict has
  std::map<std::string, std::string, std::less<>> placeholders;  ///< placeholder -> name in `weights`
  std::map<std::string, Constant, std::less<>> constants;        ///< by the name in `weights`
  std::vector<Symbol> symbols;
  std::vector<NodeInfo> nodes;
};

/// Reads the text of a file; messages name `where`.
///
/// Errors   corrupt, with the field, for what is no such file; unsupported for dtypes that Weft does not
/// have,
///          all of them at once with the nodes that want them.
Result<ModelIr> parse_model_ir(std::string_view text, const std::string& where);

/// "Infinity", "-Infinity" and "NaN", as Python writes them.
std::optional<double> number_from_text(std::string_view text);
/// A dtype as PyTorch spells it: "float32", "torch.float32".
std::optional<DType> dtype_from_torch(std::string_view name);

}  // namespace weft::importer
