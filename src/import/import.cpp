#include "import/import.h"

#include <algorithm>
#include <set>

#include "base/shown.h"
#include "import/refused.h"
#include "import/tensors.h"

namespace weft::importer {
namespace {

constexpr size_t kMostListed = 40;  // failures, and nodes of one op, in a message

/// "add_.Tensor" -> "add.Tensor"; nothing for an op that is not in place.
std::optional<std::string> without_underscore(std::string_view op) {
  const size_t dot = op.find('.');
  if (dot == std::string_view::npos || dot < 2 || op[dot - 1] != '_' || op[dot - 2] == '_') return {};
  return std::string(op.substr(0, dot - 1)) + std::string(op.substr(dot));
}

/// The first ones of a list of lines.
std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (size_t i = 0; i < lines.size() && i < kMostListed; ++i) out += "\n  " + lines[i];
  if (lines.size() > kMostListed) out += fmt::format("\n  and {} more", lines.size() - kMostListed);
  return out;
}

// Sizes may say anything, and arithmetic of dimensions raises where they leave 64 bits.
template <class F>
Status guarded(F f) {
  try {
    return f();
  } catch (const Error& e) {
    return e.status();
  }
}

bool is_getitem(const NodeInfo& node) { return node.op == "<built-in function getitem>"; }

// Nodes that make no tensor and change none: assertions, sizes that are symbols.
bool does_nothing(const NodeInfo& node) { return node.outputs.empty() && !without_underscore(node.op); }

/// The op that a node calls, with "aten." taken off.
std::string_view aten_name(const NodeInfo& node) {
  std::string_view name = node.op;
  if (name.starts_with("aten.")) name.remove_prefix(5);
  return name;
}

struct Resolved {
  const AtenOp* op = nullptr;
  bool in_place = false;
};
Resolved resolve(const NodeInfo& node) {
  if (!node.op.starts_with("aten.")) return {};
  if (const AtenOp* op = find_aten(aten_name(node))) return {op, false};
  const auto out_of_place = without_underscore(aten_name(node));
  return {out_of_place ? find_aten(*out_of_place) : nullptr, true};
}

// All ops that are not known, with their nodes; what to do about bodies that the file does not have.
Status check_ops(const ModelIr& model) {
  std::map<std::string, std::vector<std::string>> missing;
  bool higher_order = false;
  for (const auto& node : model.nodes) {
    if (is_getitem(node) || does_nothing(node) || resolve(node).op) continue;
    missing[node.op].push_back(node.name);
    higher_order |= !node.op.starts_with("aten.");
  }
  if (missing.empty()) return {};
  std::vector<std::string> lines;
  for (const auto& [op, nodes] : missing) {
    std::string names;
    for (size_t i = 0; i < nodes.size() && i < 4; ++i) names += (i ? ", " : "") + shown(nodes[i]);
    if (nodes.size() > 4) names += fmt::format(" and {} more", nodes.size() - 4);
    const char* why = op.starts_with("aten.") ? why_refused(std::string_view(op).substr(5)) : nullptr;
    lines.push_back(fmt::format("{}: {}{}{}", shown(op), names, why ? ": " : "", why ? why : ""));
  }
  return fail(Code::unsupported, "model '{}': ops that can't be imported, with their nodes:{}{}",
              shown(model.name), joined(lines),
              higher_order
                  ? "\nhint: ops without 'aten.' have a body that the file does not hold. Export under "
                    "torch.no_grad(), without autocast, and blocks of no_grad become part of the graph"
                  : "");
}

class Import {
 public:
  Import(const ModelIr& model, std::span<const formats::Safetensors> files, const Options& options)
      : model_(model), files_(files), options_(options), graph_(std::make_shared<ir::Graph>()) {}

  Result<Imported> run() {
    for (const auto& file : files_) out_.owners.push_back(file.file.owner);
    WEFT_CHECK(check_ops(model_));
    for (const auto& input : model_.inputs) {
      if (by_name_.contains(input.name))
        return fail(Code::corrupt, "model '{}': two inputs are named '{}'", shown(model_.name),
                    shown(input.name));
      by_name_[input.name] = tensors_.add(graph_->input(input.name, input.type));
    }
    for (const auto& node : model_.nodes) add_node(node);
    std::vector<std::pair<std::string, ir::Value>> outputs;
    if (failures_.empty() && missing_weights_.empty()) outputs = find_outputs();
    if (!failures_.empty() || !missing_weights_.empty()) return refusal();
    for (const auto& [name, value] : outputs) graph_->output(name, value);
    WEFT_CHECK(turn_written_weights_into_states());
    WEFT_CHECK(ir::verify(*graph_).at("imported graph"));
    out_.graph = graph_;
    note_unused();
    return std::move(out_);
  }

 private:
  void failed(const std::string& where, const Status& status) {
    failures_.push_back(fmt::format("{}: {}", shown(where), status.message()));
  }
  Status refusal() const {
    std::string all = joined(failures_) + joined(missing_weights_);
    if (!missing_weights_.empty())
      all +=
          "\nhint: --weights FILE names a file with weights, and may be given more than once; --tie "
          "NAME=OTHER "
          "says that a file has NAME as OTHER";
    return fail(failures_.empty() ? Code::invalid_argument : Code::unsupported,
                "model '{}' can't be imported:{}", shown(model_.name), all);
  }

  // ---- tensors by name
  Result<int> find(const TensorInfo& info) {
    if (!info.producer.empty()) {
      const auto made = by_producer_.find({info.producer, info.producer_output});
      if (made != by_producer_.end()) return made->second;
    }
    if (const auto known = by_name_.find(info.name); known != by_name_.end()) return known->second;
    if (const auto weight = model_.placeholders.find(info.name); weight != model_.placeholders.end())
      return add_weight(info.name, weight->second);
    return invalid("tensor '{}' is made by no node before this one", shown(info.name));
  }

  int add_weight(const std::string& placeholder, const std::string& name) {
    auto known = weights_.find(name);
    if (known == weights_.end()) {
      auto value = weight(name);
      if (!value.ok()) {  // is said once, and its readers are looked at all the same
        missing_weights_.push_back(value.status().message());
        value = graph_->weight(name, model_.weights.find(name)->second);
      }
      known = weights_.emplace(name, tensors_.add(*value)).first;
    }
    return by_name_[placeholder] = known->second;
  }
  // A weight of the file's dtype, cast to that of the model where this is exact.
  Result<ir::Value> weight(const std::string& name) {
    const TensorType& type = model_.weights.find(name)->second;
    graph_->scope.clear();
    WEFT_TRY(const auto entry, weight_bytes(name, type));
    const auto kept = out_.weights.emplace(name, entry).first;
    kept->second.name = name;
    const ir::Value stored = graph_->weight(name, {entry.dtype, type.shape});
    return graph_->cast(stored, type.dtype);
  }
  Result<formats::TensorEntry> weight_bytes(const std::string& name, const TensorType& type) {
    const auto tied = options_.tied.find(name);
    const std::string& there = tied == options_.tied.end() ? name : tied->second;
    if (std::ranges::count_if(files_, [&](const auto& file) { return file.find(there) != nullptr; }) > 1)
      return invalid("weight '{}' is in several of the files; give one that has it", shown(there));
    for (const auto& file : files_)
      if (const auto* entry = file.find(there)) {
        const bool widens =
            is_float(type.dtype) && is_float(entry->dtype) && promote(entry->dtype, type.dtype) == type.dtype;
        if (!(to_shape(entry->shape) == type.shape) || (entry->dtype != type.dtype && !widens))
          return invalid("weight '{}' is {}, but the model wants {}", shown(there),
                         weft::text(TensorType{entry->dtype, to_shape(entry->shape)}), weft::text(type));
        return *entry;
      }
    formats::TensorEntry entry{.name = name, .dtype = type.dtype, .shape = {}, .bytes = {}};
    for (const Dim d : type.shape) {
      if (!d.is_const())
        return invalid("weight '{}' is {}: its sizes must be numbers", shown(name), weft::text(type));
      entry.shape.push_back(d.value());
    }
    if (const auto constant = model_.constants.find(name); constant != model_.constants.end()) {
      const auto bytes = std::make_shared<const std::string>(constant->second.bytes);
      out_.owners.push_back(bytes);
      entry.bytes = std::as_bytes(std::span(*bytes));
      return entry;
    }
    if (element_count(std::span<const int64_t>(entry.shape)) == 0) return entry;
    const bool lifted = there.find("lifted_tensor") != std::string::npos;
    return invalid(
        "weight '{}' ({}) is in none of the files{}", shown(there), weft::text(type),
        lifted ? "; an export on the meta device loses such constants of a model's code: export on the CPU"
               : "");
  }

  // ---- nodes
  void add_node(const NodeInfo& node) {
    if (does_nothing(node)) return;
    if (is_getitem(node)) {
      add_item(node);
      return;
    }
    const Resolved found = resolve(node);
    Converted from{&node, found.op, {}};
    for (const auto& input : node.inputs) {
      auto tensor = find(input);
      if (tensor.ok()) from.inputs.push_back(*tensor);
      if (!tensor.ok()) {
        failed(node, tensor.status());
        return;
      }
    }
    auto made = convert(from, found.in_place);
    if (!made.ok()) {
      failed(node, made.status());
      return;
    }
    keep(node, found, std::move(from), *made);
  }

  void keep(const NodeInfo& node, const Resolved& found, Converted from, const ir::ValueList& made) {
    if (found.in_place && found.op->write == nullptr) {
      const int self = from.inputs[0];
      Status written = guarded([&] {
        return tensors_.write(self, made[0], *graph_, [this](const Converted& c) { return convert(c); });
      });
      if (written.ok()) written = graph_->take_status();
      if (!written.ok()) failed(node, written);
      if (!node.outputs.empty()) name_result(node, 0, self);
      return;
    }
    const bool row_major = lies_in_rows(node, *found.op, from.inputs);
    for (size_t i = 0; i < made.size(); ++i) {
      from.result = i;
      if (!made[i]) {
        name_result(
            node, i,
            tensors_.add_missing(fmt::format("result {} of node '{}' is not imported", i, node.name)));
        continue;
      }
      // A cast to another dtype is a copy.
      const bool view =
          found.op->write && !from.inputs.empty() && made[i].dtype() == node.inputs[0].type.dtype;
      const int tensor = view ? tensors_.add_view(made[i], from) : tensors_.add(made[i]);
      if (!row_major) scattered_.insert(tensor);
      name_result(node, i, tensor);
    }
  }

  // PyTorch lays a result out as the operands are, but for views and a few ops that give views of what they
  // made.
  bool lies_in_rows(const NodeInfo& node, const AtenOp& op, const std::vector<int>& inputs) const {
    const std::string_view name = op.name;
    const auto format = node.attrs.find("memory_format");
    const auto* word = format == node.attrs.end() ? nullptr : std::get_if<std::string>(&format->second.value);
    if (word && word->ends_with("contiguous_format")) return true;
    if (name == "contiguous.default") return !word;
    for (const char* turned : {"einsum", "scaled_dot_product", "lstm", "gru", "linalg"})
      if (name.find(turned) != std::string_view::npos) return false;
    if (op.write && std::string_view(op.how) != "reshape") return false;
    return std::ranges::none_of(inputs, [&](int i) { return scattered_.contains(i); });
  }

  // Its results get stand-ins, so that the nodes behind it are looked at as well.
  void failed(const NodeInfo& node, const Status& status) {
    failed(fmt::format("node '{}' ({})", shown(node.name), shown(node.op)), status);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      name_result(node, i, tensors_.add(graph_->weight("?", node.outputs[i].type)));
  }

  void name_result(const NodeInfo& node, size_t i, int tensor) {
    by_producer_[{node.name, static_cast<int64_t>(i)}] = tensor;
    // A node of one result is known by its own name, and before a result of another that is numbered so.
    if (node.outputs.size() == 1) by_name_[node.name] = tensor;
    by_name_.emplace(node.outputs[i].name, tensor);
  }

  // getitem lists all results of a node, and says which it is.
  void add_item(const NodeInfo& node) {
    const auto given = node.attrs.find("index");
    const auto* index = given == node.attrs.end() ? nullptr : std::get_if<int64_t>(&given->second.value);
    if (index && *index >= 0 && static_cast<size_t>(*index) < node.inputs.size() &&
        node.outputs.size() == 1) {
      size_t which = static_cast<size_t>(*index);
      // Results that are None have numbers, too, and are not in the list.
      const std::string numbered = fmt::format("{}_{}", node.inputs[0].producer, *index);
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i].name == numbered) which = i;
      if (auto tensor = find(node.inputs[which]); tensor.ok()) {
        name_result(node, 0, *tensor);
        return;
      }
    }
    failed(node, invalid("it picks no result of a node before it"));
  }

  Result<ir::ValueList> convert(const Converted& from, bool in_place = false) {
    const NodeInfo& node = *from.node;
    ir::ValueList inputs;
    for (const int tensor : from.inputs) {
      WEFT_TRY(const ir::Value value,
               tensors_.read(tensor, [this](const Converted& c) { return convert(c); }));
      inputs.push_back(value);
    }
    if (in_place && inputs.empty()) return invalid("an op in place, without a tensor");
    graph_->scope = node.name;
    Call call(node, *from.op, *graph_, inputs);
    call.row_major = !from.inputs.empty() && !scattered_.contains(from.inputs[0]);
    WEFT_CHECK(guarded([&] {
      if (call.status().ok()) from.op->convert(call);
      return Status();
    }));
    if (in_place && call.status().ok() && from.op->write == nullptr && !call.results.empty())
      call.results[0] =
          graph_->broadcast(graph_->cast(call.results[0], inputs[0].dtype()), inputs[0].shape());
    Status built = graph_->take_status();
    WEFT_CHECK(call.status());
    WEFT_CHECK(std::move(built));
    for (auto& note : call.notes) out_.notes.push_back(fmt::format("node '{}': {}", shown(node.name), note));
    WEFT_CHECK(check_results(node, call.results, in_place));
    return std::move(call.results);
  }

  // A result that the op does not give is one that seldom is read.
  static Status check_results(const NodeInfo& node, const ir::ValueList& made, bool in_place) {
    if (made.size() != node.outputs.size() && !(in_place && node.outputs.empty()))
      return invalid("it has {} results, but the file says {}", made.size(), node.outputs.size());
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (made[i] && !node.outputs[i].name.empty() && !(made[i].type() == node.outputs[i].type))
        return invalid("result {} is {}, but the file says {}", i, weft::text(made[i].type()),
                       weft::text(node.outputs[i].type));
    return {};
  }

  // ---- the end
  std::vector<std::pair<std::string, ir::Value>> find_outputs() {
    std::vector<std::pair<std::string, ir::Value>> outputs;
    std::map<std::string, int> times;
    for (const auto& info : model_.outputs) {
      auto tensor = find(info);
      if (!tensor.ok()) {
        failed(fmt::format("output '{}'", shown(info.name)), tensor.status());
        continue;
      }
      auto value = tensors_.read(*tensor, [this](const Converted& c) { return convert(c); });
      if (!value.ok()) {
        failed(fmt::format("output '{}'", shown(info.name)), value.status());
        continue;
      }
      if (!(value->type() == info.type))
        failed(fmt::format("output '{}'", shown(info.name)),
               invalid("it is {}, but the file says {}", weft::text(value->type()), weft::text(info.type)));
      const int n = times[info.name]++;
      outputs.emplace_back(n ? fmt::format("{}.{}", info.name, n) : info.name, *value);
    }
    return outputs;
  }

  // A buffer that the model updates in place keeps its value from one run to the next.
  Status turn_written_weights_into_states() {
    for (const auto& [name, tensor] : weights_) {
      if (!tensors_.written(tensor)) continue;
      WEFT_TRY(const ir::Value after,
               tensors_.read(tensor, [this](const Converted& c) { return convert(c); }));
      auto& all = graph_->weights;
      const auto at = std::find_if(all.begin(), all.end(), [&](const auto& w) { return w.name == name; });
      if (out_.weights.at(name).dtype != after.dtype())
        return invalid("model '{}' updates '{}', which the file has in {}: it must be {}", shown(model_.name),
                       shown(name), weft::name(out_.weights.at(name).dtype), weft::name(after.dtype()));
      graph_->scope = name;
      const auto kept = graph_->one("assign", {graph_->value(at->value), after});
      graph_->states.push_back({name, at->value, kept.id()});
      all.erase(at);
    }
    for (const auto& input : model_.inputs)
      if (tensors_.written(by_name_[input.name]))
        out_.notes.push_back(
            fmt::format("the model writes to its input '{}'; the program does not", input.name));
    return {};
  }

  void note_unused() {
    size_t unused = 0;
    std::string first;
    for (const auto& file : files_)
      for (const auto& entry : file.tensors)
        if (!model_.weights.contains(entry.name)) {
          if (unused++ == 0) first = entry.name;
        }
    if (unused > 0)
      out_.notes.push_back(
          fmt::format("{} of the tensors given are none of the model's, as '{}'", unused, first));
  }

  const ModelIr& model_;
  std::span<const formats::Safetensors> files_;
  const Options& options_;
  std::shared_ptr<ir::Graph> graph_;
  Tensors tensors_;
  std::map<std::pair<std::string, int64_t>, int> by_producer_;
  std::map<std::string, int> by_name_, weights_;
  std::set<int> scattered_;  // tensors that may lie in memory in another way than row by row
  std::vector<std::string> failures_, missing_weights_;
  Imported out_;
};

}  // namespace

Result<Imported> import_model(const ModelIr& model, std::span<const formats::Safetensors> files,
                              const Options& options) {
  return Import(model, files, options).run();
}

}  // namespace weft::importer
