#pragma once
#include <memory>

#include "formats/safetensors.h"
#include "import/model_ir.h"
#include "ir/graph.h"

// An ATen graph with its weights as a graph of Weft's ops.
namespace weft::importer {

struct Imported {
  std::shared_ptr<ir::Graph> graph;
  /// The bytes of each of the graph's weights and states, by name.
  std::map<std::string, formats::TensorEntry> weights;
  std::vector<std::shared_ptr<const void>> owners;  ///< of those bytes: the files, and what was made of them
  std::vector<std::string> notes;                   ///< what is no failure, and should be known
};

struct Options {
  /// Name of a weight -> the name that a file has it by: for tied weights, of which a file has one.
  std::map<std::string, std::string> tied;
};

/// Converts the graph. The files are searched for weights in their order.
///
/// Errors   unsupported, which lists every op that is not known, and every call that can't be converted, with
/// the
///          names of the nodes; invalid_argument, which lists the weights that are missing or of another
///          type.
Result<Imported> import_model(const ModelIr& model, std::span<const formats::Safetensors> files,
                              const Options& options = {});

/// docs/import.md: how each op of ATen is imported, and which of the core set are not.
std::string coverage_page();

}  // namespace weft::importer
