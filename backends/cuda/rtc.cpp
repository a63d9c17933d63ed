#include "rtc.hpp"

#include <dlfcn.h>

#include <memory>

namespace weft::cuda {

// Declared here as the vendor's header declares it, which a small toolkit lacks.
struct Compiler {
  using Program = struct RtcProgram*;
  int (*version)(int* major, int* minor);
  const char* (*error_string)(int);
  int (*create)(Program*, const char* text, const char* name, int n_headers, const char* const* headers,
                const char* const* names);
  int (*destroy)(Program*);
  int (*compile)(Program, int n_options, const char* const* options);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*code_size)(Program, size_t*);
  int (*code)(Program, char*);
  std::string missing;  // why it can't be used; empty if it can
};

namespace {

Compiler open_library() {
  Compiler c{};
  void* library = nullptr;
  for (const char* name : gpu::kCompilers)
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    c.missing = std::string(gpu::kCompilers[0]) + " was not found: texts are not compiled";
    return c;
  }
  const auto load = [&](auto& function, const std::string& name) {
    const std::string full = gpu::kCompilerPrefix + name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, full.c_str()));
    if (!function)
      c.missing = std::string(gpu::kCompilers[0]) + ": the library that was found has no " + full;
  };
  const std::string code = gpu::kCompilerCode;
  load(c.version, "Version"), load(c.error_string, "GetErrorString"), load(c.create, "CreateProgram");
  load(c.destroy, "DestroyProgram"), load(c.compile, "CompileProgram"), load(c.log_size, "GetProgramLogSize");
  load(c.log, "GetProgramLog"), load(c.code_size, "Get" + code + "Size"), load(c.code, "Get" + code);
  return c;
}

std::string log_of(const Compiler& c, Compiler::Program program) {
  size_t size = 0;
  c.log_size(program, &size);
  std::string log(size, '\0');
  if (size) c.log(program, log.data());
  return log.c_str();
}

}  // namespace

const Compiler* compiler(std::string* missing) {
  static const Compiler& c = *new Compiler(open_library());
  if (c.missing.empty()) return &c;
  if (missing) *missing = c.missing;
  return nullptr;
}

std::string version_of(const Compiler& c) {
  int major = 0, minor = 0;
  c.version(&major, &minor);
  return backend::format("{} {}.{}", gpu::kCompilerPrefix, major, minor);
}

std::vector<std::string> options_for(const Device& d) {
  std::vector<std::string> all = {gpu::kTargetOption + d.target};
  for (const char* option : gpu::kCompilerOptions) all.push_back(option);
  if (d.dependent_launch) all.push_back("-DWEFT_STARTS_EARLY");
  return all;
}

Outcome compile_text(const Compiler& c, const char* text, const Device& d, std::vector<char>& code) {
  Compiler::Program program = nullptr;
  const auto failed = [&](const char* what, int got) {
    return Outcome::fail(WEFT_DEVICE, "{}: {}: {}", version_of(c), what, c.error_string(got));
  };
  if (const int got = c.create(&program, text, "weft.cu", 0, nullptr, nullptr))
    return failed("creating a program", got);
  const auto destroy = [&](Compiler::Program p) { c.destroy(&p); };
  const std::unique_ptr<RtcProgram, decltype(destroy)> owned(program, destroy);
  const std::vector<std::string> options = options_for(d);
  std::vector<const char*> pointers;
  for (const std::string& o : options) pointers.push_back(o.c_str());
  if (const int got = c.compile(program, static_cast<int>(pointers.size()), pointers.data()))
    return Outcome::fail(WEFT_INVALID_ARGUMENT, "{} for {}: {}: {}", version_of(c), d.target,
                         c.error_string(got), log_of(c, program));
  size_t size = 0;
  if (const int got = c.code_size(program, &size)) return failed("the size of the code", got);
  code.resize(size);
  if (const int got = c.code(program, code.data())) return failed("the code", got);
  return Outcome::ok();
}

}  // namespace weft::cuda
