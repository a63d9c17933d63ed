#include "runtime/constants.h"

namespace weft::runtime {
namespace {

// All that the results depend on: the calls, the weights' bytes and the policy. Names do not count.
std::string identity(program::CompiledProgram recipe, const seam::Device& device, const Policy& policy) {
  for (auto& call : recipe.calls) call.where.clear();
  for (auto& weight : recipe.weights) weight.name.clear();
  for (auto& blob : recipe.blobs) {
    const WeightKey key = WeightKey::of(blob.data, blob.size, device);
    blob = program::Blob::copy_of(key.hash, sizeof key.hash);
  }
  return fmt::format("{} {} {} {} {}", static_cast<int>(policy.fallback), policy.decompose,
                     policy.determinism, policy.precision, program::serialize(recipe));
}

}  // namespace

Result<std::vector<WeightStore::Ref>> make_constants(std::shared_ptr<const program::CompiledProgram> recipe,
                                                     const std::vector<seam::Device*>& devices,
                                                     const Policy& policy) {
  const std::string id = identity(*recipe, *devices[0], policy);
  std::vector<DeviceArray> outputs;
  const auto run = [&]() -> Status {
    if (!outputs.empty()) return {};
    WEFT_TRY(auto session, Session::create_whole(recipe, devices, policy));
    WEFT_TRY(outputs, session->run_on({}));
    return session->wait();
  };
  std::vector<WeightStore::Ref> made;
  for (size_t i = 0; i < recipe->outputs.size(); ++i) {
    const std::string own = fmt::format("{} {}", i, id);
    const auto make = [&]() -> Result<seam::BufferRef> {
      WEFT_CHECK(run());
      return outputs[i].buffer;
    };
    WEFT_TRY(auto entry, weight_store().get(WeightKey::of(own.data(), own.size(), *devices[0]), make));
    made.push_back(std::move(entry));
  }
  return made;
}

}  // namespace weft::runtime
