#include <sys/prctl.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/lab/lab.h"
#include "cli/show.h"
#include "cli/text/screen.h"
#include "compiler/compile.h"
#include "lab/kernels/program_calls.h"
#include "lab/kernels/record.h"
#include "lab/results/file.h"
#include "lab/results/result.h"
#include "weft/backends.h"

// Compares kernels, shows what is found, and keeps it in a file.
namespace weft::cli {
namespace {

std::string in_words(const lab::Row& r, const lab::Work& work, bool baseline) {
  const auto name = r.kernel.empty() || r.kernel == r.contender
                        ? r.contender
                        : fmt::format("{} ({})", r.contender, r.kernel);
  if (r.out()) return fmt::format("  {:<44} {:<10} {}", name, lab::name(r.verdict), r.why);
  if (r.nanoseconds.empty()) return fmt::format("  {:<44} not timed", name);
  const double median = lab::quantile(r.nanoseconds, 0.5);
  const auto ratio = baseline                ? ""
                     : !(r.ratio.middle > 0) ? "not compared: the baseline is out"
                                             : fmt::format("{:.3f} times as fast ({:.3f} to {:.3f})",
                                                           r.ratio.middle, r.ratio.low, r.ratio.high);
  const auto clock = lab::clock_in_words(r);
  const auto refused =
      r.refused ? fmt::format("; refused {} of {} cases", r.refused, r.refused + r.cases) : "";
  return fmt::format(
      "  {:<44} {:<10} {:>10.2f} us  {:>7.1f} GB/s {:>7.1f} Gflop/s  {:>5.1f} % of the bound  {}{}{}", name,
      baseline ? "baseline" : lab::name(r.verdict), median / 1e3, work.bytes / median, work.flops / median,
      100 * r.accuracy.share_of_bound, ratio, refused, clock);
}

std::string in_words(const lab::Comparison& c) {
  std::string words = c.operation.label();
  for (size_t i = 0; i < c.rows.size(); ++i) words += "\n" + in_words(c.rows[i], c.work, i == 0);
  return words;
}

// What selection goes by from now on.
void keep_fastest(const lab::Comparison& c, bool json) {
  const auto kept = value_or_raise(lab::record(c));
  if (json) return;
  if (kept.kernel.empty())
    fmt::print("  nothing is recorded: no other kernel of {} is faster\n", c.rows[0].contender);
  else
    fmt::print("  recorded: {} is taken in place of {}\n", kept.kernel, kept.instead);
}

// The exit status: that of the worst row.
int status_of(const lab::Comparison& c) {
  int worst = 0;
  for (const auto& r : c.rows) worst = std::max(worst, lab::status_of(r.verdict));
  return worst;
}

// The command line of a contender's process: this program, with the options that decide how kernels run.
std::vector<std::string> worker_command(const Common& common) {
  std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").string(), "lab",
                                    "--worker", "--threads", std::to_string(common.threads)};
  for (const auto& p : common.plugins)
    words.insert(words.end(), {"--plugin", std::filesystem::absolute(p).string()});
  return words;
}

std::vector<std::string> contenders_of(const LabOptions& o) {
  if (!o.words.empty() && !o.providers.empty())
    throw UsageError(
        invalid("--providers chooses among all contenders; with {} it says nothing", o.words[0]));
  if (!o.words.empty() && !o.device.empty()) contenders_on(o.device);  // for its errors
  const auto names = o.words.empty() ? contenders_here(o.providers, o.device) : o.words;
  if (names.size() < 2 && !(names.size() == 1 && names[0].ends_with(".*")))
    throw UsageError(
        invalid("{}; name another contender, see weft lab list",
                names.empty() ? "no contender is left to be compared"
                              : fmt::format("one contender, {}, has nobody to be compared with", names[0])));
  return names;
}

// What is done now and how long all of it takes still. An operation takes as long as those before it did on
// average, and the first one as long as it may.
class Progress {
 public:
  Progress(bool wanted, size_t operations, double seconds)
      : live_(wanted), operations_(operations), expected_(seconds) {}

  void begin(const std::string& label) { label_ = label, began_ = Clock::now(); }
  void show(const std::string& what) {
    const double rest = std::max(0.0, expected_ - seconds_since(began_)),
                 later = expected_ * static_cast<double>(operations_ - done_ - 1);
    live_.show(fmt::format("{}/{}  {}  {}: {}", done_ + 1, operations_, left(rest + later), label_, what));
  }
  void end() {
    live_.clear();
    expected_ = seconds_since(start_) / static_cast<double>(++done_);
  }

 private:
  LiveLine live_;
  size_t operations_, done_ = 0;
  double expected_;  // seconds of an operation
  std::string label_;
  Clock::time_point start_ = Clock::now(), began_ = start_;
};

std::vector<lab::Operation> chosen_operations(const LabOptions& o, bool json) {
  if (o.program.empty()) {
    if (!o.inputs.file.empty() || !o.inputs.sizes.empty())
      throw UsageError(invalid("--inputs and --size belong to --program"));
    return value_or_raise(lab::operations_of(o.choice));
  }
  const auto program = value_or_raise(compiler::read_file(o.program));
  auto calls =
      value_or_raise(lab::operations_of_program(program, value_or_raise(inputs_of(program, o.inputs))));
  if (!json && calls.left_out)
    fmt::print("{} of {} left out: fused, or of operands that are no floats\n",
               counted(calls.left_out, "call"), program.name);
  return std::move(calls.operations);
}

// "onednn.*" may be one kernel for an operation, and none for the next.
void keep_contested(std::vector<lab::Operation>& operations, const std::vector<std::string>& contenders,
                    bool json) {
  if (std::ranges::none_of(contenders, [](const auto& name) { return name.ends_with(".*"); })) return;
  Status why = invalid("{} has one kernel for each operation: nothing can be compared", contenders[0]);
  const size_t left_out = std::erase_if(operations, [&](const lab::Operation& o) {
    auto names = lab::expanded(contenders, o);
    if (!names.ok()) why = names.take_status();
    return !names.ok() || names->size() < 2;
  });
  if (operations.empty()) throw Error(why);
  if (!json && left_out)
    fmt::print("{} left out: no two kernels take them\n", counted(left_out, "operation"));
}

}  // namespace

int compare_kernels(const LabOptions& o, const Common& common) {
  const auto contenders = contenders_of(o);
  if (o.record && !is_backend_available(contenders[0]))
    throw UsageError(invalid("--record wants a device as the first contender; got {}", contenders[0]));
  auto operations = chosen_operations(o, common.json);
  keep_contested(operations, contenders, common.json);
  std::optional<lab::ResultFile> file;
  if (!o.out.empty()) file.emplace(value_or_raise(lab::ResultFile::open(o.out)));
  lab::Setting setting{.machine = {}, .version = WEFT_RELEASE, .commit = commit_of_build()};
  if (file || common.json) {
    std::vector<DType> dtypes;
    for (const auto& operation : operations)
      if (std::ranges::find(dtypes, operation.dtype) == dtypes.end()) dtypes.push_back(operation.dtype);
    setting.machine = lab::this_machine(contenders, lab::WithLimits::yes, dtypes);
  }
  auto options = o.contest;
  if (options.seed == 0) options.seed = lab::drawn_seed();
  options.process.command = worker_command(common), options.process.device = o.device;
  options.threads = common.threads;
  ::prctl(PR_SET_DUMPABLE, 0);  // this memory, and the seed in it, is not a kernel's to read
  lab::adopt_orphans(true);
  Progress progress(!common.json, operations.size(), options.seconds);
  int worst = 0;
  for (const auto& operation : operations) {
    progress.begin(operation.label());
    const auto c = value_or_raise(
        lab::compare(operation, contenders, options, [&](const std::string& what) { progress.show(what); }));
    progress.end();
    const auto result = file || common.json ? lab::result_of(c, options, setting) : nlohmann::json();
    if (file) raise_if(file->add(result));
    fmt::print("{}\n", common.json ? lab::line_of(result) : in_words(c));
    if (o.record) keep_fastest(c, common.json);
    std::fflush(stdout);
    worst = std::max(worst, status_of(c));
  }
  return worst;
}

}  // namespace weft::cli
