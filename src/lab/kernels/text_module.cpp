#include "lab/kernels/text_module.h"

#include "seam/c_error.h"

namespace weft::lab {

Result<std::unique_ptr<TextModule>> TextModule::compile(seam::Device& device, const std::string& text,
                                                        const char* entry, const std::string& name) {
  constexpr std::string_view kRefusal = "weft: unsupported";
  if (!device.backend().compile) return fail(Code::unsupported, "{} compiles no text", device.name());
  const weft_source source{sizeof source, 0, text.c_str(), entry};
  weft_module module = nullptr;
  seam::CError error;
  const weft_code code = device.backend().compile(device.c(), &source, &module, error.out());
  const auto log = error.text();
  if (const size_t at = log.find(kRefusal); code != WEFT_OK && at != std::string::npos)
    return fail(Code::unsupported, "{}", log.substr(at, log.find('\n', at) - at));
  WEFT_CHECK(error.status(code).at("compiling " + name));
  return std::unique_ptr<TextModule>(new TextModule(device, module));
}

}  // namespace weft::lab
