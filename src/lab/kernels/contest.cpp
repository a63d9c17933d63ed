#include "lab/kernels/contest.h"

#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <random>

#include "lab/kernels/provider.h"
#include "lab/kernels/record.h"
#include "lab/kernels/validate.h"
#include "lab/kernels/watch.h"
#include "seam/registry.h"
#include "weft/random.h"

namespace weft::lab {
namespace {

using Clock = std::chrono::steady_clock;

// Of turns in a process. The first gets the fewest; then as many that they take half as long as all else that
// a process costs: the noise of turns and that between processes are both paid for.
constexpr size_t kFewestPairs = 10, kMostPairs = 200;
// Processes of a contender.
constexpr size_t kFewest = 8, kFewestQuick = 3, kMost = 400;
// The first process is judged on as many elements as four later ones: more processes say more, of times and
// of results.
constexpr double kLaterOracle = 4;
constexpr double kShareOfOne = 8;     // by which a launch alone is judged on fewer elements
constexpr int kElsewhere = 4;         // sets of operands that the first process is judged on after its turns
constexpr uint64_t kSmall = 8 << 20;  // bytes of a set, for so many
// Of how many processes after the first one is looked at for what it remembers and goes on with: no kernel
// knows which.
constexpr uint64_t kLooksAgain = 2;
constexpr double kCalmest = 0.1;  // share of the turns by which clocks are checked
constexpr double kCalm = 3e-4;    // seconds that asking a process may take beside its launches

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

// As many of those that this process may use; empty: all of them.
std::vector<int> draw_processors(int count, uint64_t seed) {
  cpu_set_t allowed;
  if (count <= 0 || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  std::vector<int> all;
  for (int p = 0; p < CPU_SETSIZE; ++p)
    if (CPU_ISSET(p, &allowed)) all.push_back(p);
  if (static_cast<size_t>(count) >= all.size()) return {};
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    std::swap(all[i], all[i + random_word(seed, i) % (all.size() - i)]);
  all.resize(static_cast<size_t>(count));
  return all;
}

// A row, its process of this generation, and what was measured of it.
struct Timed {
  Row& row;
  std::unique_ptr<Seat> seat;
  uint64_t launches = 1;
  std::vector<double> turns;   // seconds of a launch, by turn of this generation
  std::vector<double> asking;  // seconds that a question and its process took beside its launches
  double cpu = 0, all_launches = 0;
  Watch watched;        // of its process when it was warm
  uint64_t before = 0;  // bytes of its process before the kernel was loaded, with the lab's own

  void exclude(Verdict verdict, std::string why) {
    row.verdict = verdict, row.why = std::move(why);
    seat.reset();
  }
  bool exclude_if_wrong() {
    if (!row.accuracy.wrong.empty()) exclude(Verdict::wrong, row.accuracy.wrong);
    return row.out();
  }
  void exclude(const Status& status) {
    exclude(Verdict::invalid,
            (status.code() == Code::unsupported ? "it refuses the call: " : "") + status.message());
  }
};

class Contest {
 public:
  Contest(const Operation& o, const ContestOptions& options, std::vector<Row>& rows)
      : o_(o), options_(options) {
    for (Row& row : rows) timed_.push_back({.row = row});
  }

  Result<size_t> run(const std::function<void(const std::string&)>& see) {
    const auto began = Clock::now();
    const size_t fewest = options_.quick ? kFewestQuick : kFewest;
    // Who looks often finds what is not there. So each look may spend that share of the doubt which its time
    // is of all the time: together they are as sure as was asked, and the last look is nearly as sharp as if
    // it were the only one.
    double spent = 0;
    size_t done = 0, next_look = fewest;
    while (can_go_on()) {
      see(fmt::format("process {} of each kernel", done + 1));
      WEFT_CHECK(generation(done++));
      const double share = seconds_since(began) / options_.seconds;
      const bool over = done == kMost || !can_go_on() || (done >= fewest && !(share < 1));
      if (!over && done < next_look) continue;
      next_look = std::max(done + 2, done * 3 / 2);
      const double by_now = over ? 1 : share;
      conclude(1 - (1 - options_.confidence) * (by_now - spent));
      spent = by_now;
      if (over || decided()) break;
    }
    return done;
  }

 private:
  bool can_go_on() const {
    return !timed_[0].row.out() &&
           std::ranges::any_of(timed_.begin() + 1, timed_.end(), [](const Timed& t) { return !t.row.out(); });
  }
  bool decided() const {
    return std::ranges::none_of(timed_.begin() + 1, timed_.end(),
                                [](const Timed& t) { return t.row.verdict == Verdict::undecided; });
  }

  Status generation(size_t number) {
    const auto began = Clock::now();
    const uint64_t seed = random_word(options_.seed, number);
    oracle_seconds_ = options_.oracle_seconds / (number == 0 ? 1 : kLaterOracle);
    WEFT_TRY(const auto data, draw_data(o_, seed));
    if (number == 0)
      least_oracle_ =
          oracle_time(o_, slice_of_element(o_, 0, data.inputs[0].type.shape, 0, data.outputs[0].shape, seed));
    const auto processors = draw_processors(options_.threads, random_word(seed, 8000));
    for (Timed& t : timed_) t.row.process.processors = processors;
    // Who comes first is a little slower: it waits while the others are made ready. So it is another one in
    // the next process.
    const auto in_order = [&](size_t i, bool backwards) -> Timed& {
      return timed_[backwards ? timed_.size() - 1 - i : i];
    };
    for (size_t i = 0; i < timed_.size(); ++i)
      if (Timed& t = in_order(i, number % 2); !t.row.out()) WEFT_CHECK(start(t, data, seed, number == 0));
    const auto first_turn = Clock::now();
    for (size_t pair = 0; pair < pairs_; ++pair) {
      for (size_t i = 0; i < timed_.size(); ++i)
        if (Timed& t = in_order(i, (number + pair) % 2); !t.row.out()) take_turn(t, random_word(seed, pair));
    }
    const double of_pair = seconds_since(first_turn) / static_cast<double>(pairs_);
    for (Timed& t : timed_)
      if (!t.row.out()) WEFT_CHECK(end(t, seed, number == 0));
    check_clocks();
    keep_pairs();
    const double beside = seconds_since(began) - of_pair * static_cast<double>(pairs_);
    pairs_ = static_cast<size_t>(std::clamp(beside / 2 / of_pair, double{kFewestPairs}, double{kMostPairs}));
    return {};
  }

  Status start(Timed& t, const Data& data, uint64_t seed, bool first) {
    Process process = t.row.process;
    process.memory_bytes = room_for(data);
    t.turns.clear();
    auto contender = Contender::start(t.row.prepared, process);
    if (!contender.ok()) return t.exclude(contender.status()), Status();
    auto opened = (*contender)->open(ask_of(o_));
    if (!opened.ok()) return t.exclude(opened.status()), Status();
    t.row.kernel = opened->kernel, t.row.identity = opened->identity, t.row.device = opened->device;
    t.row.open_seconds = opened->seconds;
    auto own = (*contender)->set_up(options_.cold);
    if (!own.ok()) return t.exclude(own.status()), Status();
    t.before = opened->resident_before + *own;
    if (opened->compile_seconds > 0)
      t.row.compile_seconds =
          first ? opened->compile_seconds : std::max(t.row.compile_seconds, opened->compile_seconds);
    t.seat = std::make_unique<Seat>(std::move(contender).value());
    if (Status s = t.seat->put(data, seed); !s.ok()) return t.exclude(s), Status();
    if (first) WEFT_CHECK(judge_one(t, random_word(seed, 3000)));
    if (!t.row.out()) warm_up(t, seed);
    if (!t.row.out()) t.watched = watch(t.seat->contender());
    return {};
  }

  // A launch alone, judged.
  Status judge_one(Timed& t, uint64_t seed) {
    if (auto turn = t.seat->turn(o_, {}, seed); !turn.ok()) return t.exclude(turn.status()), Status();
    WEFT_CHECK(t.seat->judge(o_, oracle_seconds_ / kShareOfOne, seed, t.row.accuracy));
    return t.exclude_if_wrong(), Status();
  }

  // Finds out how many launches make a turn, until a turn of as many takes about as long as is wanted.
  void warm_up(Timed& t, uint64_t seed) {
    t.launches = 1;
    for (int i = 0; i < 4; ++i) {
      auto turn = t.seat->turn(o_, {.launches = t.launches, .cold = options_.cold},
                               random_word(seed, 1000 + static_cast<uint64_t>(i)));
      if (!turn.ok()) return t.exclude(turn.status());
      const double each = std::max(1e-9, turn->seconds() / static_cast<double>(t.launches));
      if (options_.cold) return;  // the flush takes longer than any launch
      t.launches = static_cast<uint64_t>(
          std::clamp(std::round(options_.sample / each), 1.0, static_cast<double>(kMostLaunches)));
    }
  }

  void take_turn(Timed& t, uint64_t seed) {
    auto turn = t.seat->turn(o_, {.launches = t.launches, .cold = options_.cold}, seed);
    if (!turn.ok()) return t.exclude(turn.status());
    const double spent = turn->seconds(), outside = turn->seconds_outside();
    if (!(spent > 0)) return t.exclude(Verdict::invalid, "its clock counted nothing");
    if (spent > outside)
      return t.exclude(Verdict::invalid, "it says that its launches took longer than the question did");
    // A busy machine answers late, but without computing for it. Copies to and from a device are a part of
    // the question, and of no launch.
    t.row.on_host = turn->ticks > 0;
    if (t.row.on_host) t.asking.push_back(std::min(outside, turn->cpu) - spent);
    t.turns.push_back(spent / static_cast<double>(t.launches));
    t.row.nanoseconds.push_back(1e9 * t.turns.back());
    if (turn->clock > 0) t.row.clock.push_back(turn->clock);
    t.row.device_peak_bytes = std::max(t.row.device_peak_bytes, turn->device_bytes);
    t.cpu += turn->cpu, t.all_launches += static_cast<double>(t.launches);
    if (Status s = t.seat->keep_turn(o_, seconds_a_turn(), random_word(seed, 2)); !s.ok()) t.exclude(s);
  }

  double seconds_a_turn() const { return oracle_seconds_ / static_cast<double>(pairs_) / 4; }

  // Checks the results of the last turn, and what else the kernel did, and lets the process go.
  Status end(Timed& t, uint64_t seed, bool first) {
    if (const auto what = meddled(t.seat->contender(), t.watched,
                                  static_cast<double>(t.launches * t.turns.size()), t.row.on_host);
        !what.empty())
      return t.exclude(Verdict::invalid, what), Status();
    WEFT_CHECK(t.seat->judge_kept(o_, t.row.accuracy));
    if (t.exclude_if_wrong()) return {};
    const bool looks = first || random_word(seed, 7000) % kLooksAgain == 0;
    if (looks) {
      auto what = remembers(*t.seat, o_, t.launches, random_word(seed, 5000));
      if (!what.ok() || !what->empty())
        return what.ok() ? t.exclude(Verdict::invalid, *what) : t.exclude(what.status()), Status();
    }
    if (t.seat->in_place()) WEFT_CHECK(judge_one(t, random_word(seed, 4000)));
    if (t.row.out()) return {};
    if (Status s = t.seat->check_memory(); !s.ok()) return t.exclude(s), Status();
    WEFT_CHECK(t.seat->judge(o_, oracle_seconds_, random_word(seed, 2000), t.row.accuracy));
    if (t.exclude_if_wrong()) return {};
    WEFT_CHECK(judge_elsewhere(t, first, random_word(seed, 6000)));
    if (t.row.out()) return {};
    auto unwritten = t.seat->check_written();
    if (!unwritten.ok() || !unwritten->empty())
      return unwritten.ok() ? t.exclude(Verdict::wrong, *unwritten) : t.exclude(unwritten.status()), Status();
    if (const auto files = t.seat->contender().files_left(); !files.empty())
      return t.exclude(Verdict::invalid, "it left files: " + files), Status();
    if (const auto what = looks ? goes_on(t.seat->contender()) : ""; !what.empty())
      return t.exclude(Verdict::invalid, what), Status();
    const uint64_t peak = memory_of(t.seat->contender().pid()).peak;
    t.row.peak_bytes = std::max(t.row.peak_bytes, peak - std::min(peak, t.before));
    t.seat.reset();
    return {};
  }

  // Other operands at other places: a process has seen one set of them until now.
  Status judge_elsewhere(Timed& t, bool first, uint64_t seed) {
    // The rows of a dear operation are judged in one process of some.
    if (!first && oracle_seconds_ / kShareOfOne < least_oracle_ * unit(random_word(seed, 1))) return {};
    const int times = first && room_for(t.seat->data()) < kSmall ? kElsewhere : 1;
    for (int i = 0; i < times && !t.row.out(); ++i) {
      seed = random_word(seed, 0);
      if (Status s = t.seat->put(rotated(t.seat->data(), seed), seed); !s.ok()) return t.exclude(s), Status();
      WEFT_CHECK(judge_one(t, seed));
      if (t.row.out()) return {};
      if (Status s = t.seat->check_memory(); !s.ok()) return t.exclude(s), Status();
    }
    return {};
  }

  // The question's own time tells when a process counts less than passes: launches that go on elsewhere, or a
  // patched clock. A busy machine answers late now and then, a process that miscounts does in each of its
  // turns; so the calmest of them tell.
  void check_clocks() {
    double calm = INFINITY;
    for (const Timed& t : timed_)
      if (!t.row.out() && !t.asking.empty()) calm = std::min(calm, quantile(t.asking, kCalmest));
    for (Timed& t : timed_) {
      const double asked = quantile(t.asking, kCalmest);
      if (!t.row.out() && !options_.cold && asked > std::max(kCalm, 2 * calm))
        t.exclude(Verdict::invalid,
                  fmt::format("its launches took {:.0f} us longer than it counted", 1e6 * asked));
    }
  }

  void keep_pairs() {
    const Timed& base = timed_[0];
    for (Timed& t : timed_) {
      if (t.row.out() || base.row.out()) continue;
      Generation pairs;
      for (size_t i = 0; i < std::min(t.turns.size(), base.turns.size()); ++i)
        pairs.push_back({base.turns[i], t.turns[i]});
      t.row.process_ratios.push_back(middle_of(pairs));
    }
  }

  void conclude(double confidence) {
    const Timed& base = timed_[0];
    for (Timed& t : timed_) {
      if (t.row.out()) continue;
      if (base.row.out()) {  // what was found before was found against a kernel that is out
        t.row.verdict = Verdict::undecided, t.row.ratio = {};
        continue;
      }
      t.row.cpu_nanoseconds = 1e9 * t.cpu / t.all_launches;
      // What is sure stays so: a later look may spend less of the doubt, for the rows that are not.
      if (&t != &base && t.row.verdict != Verdict::undecided) continue;
      t.row.ratio = ratio_of(t.row.process_ratios, confidence, options_.seed);
      t.row.verdict = &t == &base ? Verdict::same : decide(t.row.ratio, options_.margin);
    }
  }

  const Operation& o_;
  const ContestOptions& options_;
  std::vector<Timed> timed_;
  size_t pairs_ = kFewestPairs;  // of turns in the next process
  double oracle_seconds_ = 0;    // of a check in this process
  double least_oracle_ = 0;      // of the fewest elements that can be judged
};

// A folder that goes with this.
struct Folder {
  Folder() : path((std::filesystem::temp_directory_path() / "weft-lab-XXXXXX").string()) {
    if (!::mkdtemp(path.data()))
      throw Error(
          fail(Code::io, "no folder can be made in {}", std::filesystem::temp_directory_path().string()));
  }
  ~Folder() {
    std::error_code none;
    std::filesystem::remove_all(path, none);
  }
  Folder(const Folder&) = delete;
  std::string path;
};

// That of the contender, if libraries in Python know such memory by DLPack; empty: the host's.
std::string device_beside(const std::string& contender) {
  auto provider = provider_of(contender);
  const auto name = provider.ok() && (*provider)->device ? (*provider)->device(contender) : "";
  auto device = name.empty() ? Result<seam::Device*>(nullptr) : seam::registry().open(name);
  if (!device.ok() || !*device) return "";
  const auto memory = (*device)->dl().device_type;
  return memory == kDLCUDA || memory == kDLROCM ? name : "";
}

void prepare(Row& row, const std::string& folder, const Process& process) {
  row.process = process;
  const auto began = Clock::now();
  auto provider = provider_of(row.contender);
  auto made = !provider.ok()         ? Result<std::string>(provider.status())
              : (*provider)->prepare ? (*provider)->prepare(row.contender, folder)
                                     : Result<std::string>(row.contender);
  if (provider.ok() && (*provider)->prepare) row.compile_seconds = seconds_since(began);
  if (!made.ok()) {
    row.verdict = Verdict::invalid, row.why = made.status().message();
    return;
  }
  row.prepared = std::move(made).value();
  if ((*provider)->process) (*provider)->process(row.prepared, row.process);
}

Status check_numbers(const ContestOptions& o) {
  const auto wants = [](const char* name, double got, double least, double most, const char* wanted) {
    return got > least && got < most ? Status() : invalid("{} is {}; wanted {}", name, got, wanted);
  };
  WEFT_CHECK(wants("confidence", o.confidence, 0, 1, "a share between 0 and 1, as 0.99"));
  WEFT_CHECK(wants("margin", o.margin, 0, 1, "a share between 0 and 1, as 0.015"));
  WEFT_CHECK(wants("sample", o.sample, 0, 1e6, "seconds, as 0.002"));
  return o.seconds == 0 ? Status() : wants("seconds", o.seconds, 0, 1e9, "0 or more");
}

Status precompile(const Row& row, const Operation& operation) {
  WEFT_TRY(const auto* provider, provider_of(row.contender));
  if (!provider->precompile) return {};
  WEFT_TRY(const auto call, lab::describe(ask_of(operation)));
  provider->precompile(row.prepared, call);
  return {};
}

}  // namespace

// Of 53 bits, which each reader of JSON keeps.
uint64_t drawn_seed() {
  std::random_device device;
  return 1 + ((uint64_t{device()} << 32 | device()) >> 11);
}

std::string clock_in_words(const Row& row) {
  constexpr double kSteady = 0.95;
  if (row.clock.empty()) return "";
  const double share = quantile(row.clock, 0.1) / quantile(row.clock, 0.9);
  return share < kSteady ? fmt::format("; the clock fell to {:.2f} in a tenth of the turns", share) : "";
}

Result<Comparison> compare(const Operation& operation, const std::vector<std::string>& contenders,
                           const ContestOptions& options,
                           const std::function<void(const std::string&)>& see) {
  WEFT_CHECK(check_numbers(options));
  Comparison c{.operation = operation};
  WEFT_TRY(c.work, work_of(operation));
  const Folder folder;
  WEFT_TRY(const auto names, expanded(contenders, operation));
  if (names.size() < 2)
    return invalid("{} has one contender, {}, which has nobody to be compared with; name another",
                   operation.label(), names.empty() ? "none" : names[0]);
  Process process = options.process;
  if (process.device.empty()) process.device = device_beside(names[0]);
  for (const auto& name : names) prepare(c.rows.emplace_back(Row{.contender = name}), folder.path, process);
  see("cases of conformance");
  WEFT_TRY(const auto cases, validation_cases(operation, options.oracle_seconds, options.quick));
  for (Row& row : c.rows) {
    if (row.out()) continue;
    see("conformance of " + row.contender);
    WEFT_CHECK(validate(cases, row.process, row));
    if (!row.out()) WEFT_CHECK(precompile(row, operation));
  }
  Contest contest(operation, options, c.rows);
  WEFT_TRY(c.processes, contest.run(see));
  return c;
}

}  // namespace weft::lab
