#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/hash.h"
#include "lab/kernels/confinement.h"
#include "lab/kernels/provider.h"

// A kernel in one C or C++ file, which is compiled here:
//
//   #include <weft/backend.h>
//   extern "C" weft_code weft_lab_kernel(const weft_call* call, const weft_tensor* const* inputs, const
//   weft_tensor* const* outputs);
//
// It answers WEFT_OK once the results are there, and WEFT_UNSUPPORTED for a call that it does not take.
namespace weft::lab {
namespace {

namespace fs = std::filesystem;

using Function = weft_code(const weft_call*, const weft_tensor* const*, const weft_tensor* const*);

bool is_source(const std::string& name) {
  return name.ends_with(".cpp") || name.ends_with(".cc") || name.ends_with(".c");
}
bool takes(const std::string& contender) { return is_source(contender) || contender.ends_with(".so"); }

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

// Where weft/backend.h is: installed beside this program, else in the sources that it was built from.
std::string headers() {
  std::error_code none;
  const auto installed = fs::read_symlink("/proc/self/exe", none).parent_path().parent_path() / "include";
  return fs::exists(installed / "weft/backend.h", none) ? installed.string() : WEFT_SOURCE_HEADERS;
}

// Runs a command with its output in `log`; its exit status.
int run(std::vector<std::string> words, const fs::path& log) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t child = -1;
  int status = ::posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (status) return 127;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

Result<std::string> prepare(const std::string& contender, const std::string& folder) {
  std::error_code none;
  const auto path = fs::absolute(contender, none);
  if (!fs::is_regular_file(path, none)) return fail(Code::unavailable, "there is no file {}", contender);
  if (!is_source(contender)) return path.string();
  const bool c = contender.ends_with(".c");
  std::vector<std::string> words = {environment(c ? "CC" : "CXX", c ? "cc" : "c++"),
                                    "-O3",
                                    "-march=native",
                                    "-shared",
                                    "-fPIC",
                                    "-w",
                                    c ? "-std=c11" : "-std=c++20",
                                    "-I" + headers()};
  std::istringstream more(environment("WEFT_LAB_FLAGS", ""));
  for (std::string word; more >> word;) words.push_back(word);
  const auto object = fs::path(folder) / (path.stem().string() + ".so"),
             log = fs::path(folder) / "compiler.log";
  words.insert(words.end(), {path.string(), "-o", object.string()});
  if (const int status = run(words, log))
    return invalid("{} does not compile; {} ended with status {} and said:\n{}", contender, words[0], status,
                   read(log));
  return object.string();
}

class SourceKernel : public Kernel {
 public:
  SourceKernel(std::string id, std::string identity, Function* function, seam::CallPtr call)
      : id_(std::move(id)), identity_(std::move(identity)), function_(function), call_(std::move(call)) {}

  std::string id() const override { return id_; }
  std::string identity() const override { return identity_; }
  Status place(std::span<const weft_tensor> inputs, std::span<const weft_tensor> outputs) override {
    tensors_.assign(inputs.begin(), inputs.end());
    tensors_.insert(tensors_.end(), outputs.begin(), outputs.end());
    in_.clear(), out_.clear();
    for (size_t i = 0; i < tensors_.size(); ++i)
      (i < inputs.size() ? in_ : out_).push_back(tensors_[i].dl.data ? &tensors_[i] : nullptr);
    return {};
  }
  Status run() override {
    const weft_code code = function_(call_->c(), in_.data(), out_.data());
    if (code == WEFT_OK) return {};
    return fail(code == WEFT_UNSUPPORTED ? Code::unsupported : Code::device, "it answered with code {}",
                static_cast<int>(code));
  }

 private:
  std::string id_, identity_;
  Function* function_;
  seam::CallPtr call_;
  std::vector<weft_tensor> tensors_;
  std::vector<const weft_tensor*> in_, out_;
};

Result<std::unique_ptr<Kernel>> open(const std::string& object, const seam::CallPtr& call) {
  static const Status confined = confine();  // before its code runs; a process opens kernels again and again
  WEFT_CHECK(confined);
  void* library = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return fail(Code::unavailable, "it can't be loaded: {}", ::dlerror());
  auto* function = reinterpret_cast<Function*>(::dlsym(library, "weft_lab_kernel"));
  if (!function)
    return invalid("it defines no function weft_lab_kernel, which the lab calls; see docs/lab.md");
  const auto code = read(object);
  const auto hash = hash128(std::as_bytes(std::span(code)));
  return std::unique_ptr<Kernel>(std::make_unique<SourceKernel>(
      fs::path(object).stem().string(), fmt::format("{:016x}{:016x}", hash.high, hash.low), function, call));
}

std::vector<Offer> offers() { return {}; }

}  // namespace

extern const Provider source_provider = {
    "source", "a .c or .cpp file, or a shared object, that defines weft_lab_kernel", takes, prepare, open,
    offers};

}  // namespace weft::lab
