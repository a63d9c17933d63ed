#include "cli/checking/liars.h"

#include <set>

#include "cli/checking/last_words.h"
#include "cli/show.h"
#include "cli/text/screen.h"
#include "conformance/drawn/trial.h"
#include "conformance/liars/liar.h"
#include "conformance/prepared.h"

namespace weft::cli {
namespace {

using namespace conformance;
// A liar that takes longer counts as hanging.
constexpr double kMostSeconds = 600;

struct Accused {
  std::string name;
  std::function<Trial()> trial;
};

std::vector<Accused> accused(const std::string& backend, const CheckOptions& o, int64_t drawn) {
  std::vector<Accused> all;
  const auto add_drawn = [&](uint64_t seed, uint64_t index) {
    all.push_back({drawn_name(seed, index), [=] { return try_drawn(backend, seed, index); }});
  };
  const auto is_asked = [&](const std::string& name) {
    return (o.only.empty() || o.only.cover(name)) && !o.skip.cover(name);
  };
  std::set<std::pair<uint64_t, uint64_t>> numbers;  // named ones, and those of the seed
  for (const auto& only : o.only.list())
    if (const auto one = drawn_from_name(only)) numbers.insert(*one);
  for (const Liar& liar : all_liars())
    if (is_asked(liar.name)) all.push_back({liar.name, [=] { return try_liar(liar, backend); }});
  for (uint64_t i = 0; i < static_cast<uint64_t>(drawn); ++i)
    if (is_asked(drawn_name(o.seed, i))) numbers.insert({o.seed, i});
  for (const auto& [seed, index] : numbers) add_drawn(seed, index);
  return all;
}

void print(const Trial& t, const std::string& repeat, bool as_json) {
  if (as_json)
    fmt::print("{}\n", line_of({{"liar", t.liar},
                                {"fault", t.fault},
                                {"caught", t.caught()},
                                {"by", t.by},
                                {"left_out", t.left_out},
                                {"words", t.words},
                                {"repeat", repeat}}));
  else if (t.caught())
    fmt::print("{:<31} {:<72} {}\n", t.liar, t.fault, t.by);
  else if (!t.left_out.empty())
    fmt::print("{:<31} {:<72} left out: {}\n", t.liar, t.fault, t.left_out);
  else
    fmt::print("{:<31} {:<72} SURVIVED: {}\n  repeat: {}\n", t.liar, t.fault, t.words, repeat);
  std::fflush(stdout);
}

}  // namespace

void print_liars(bool as_json) {
  for (const Liar& liar : all_liars())
    Show(as_json).result({{"liar", liar.name}, {"fault", liar.fault}, {"caught_by", liar.caught_by}},
                         fmt::format("{:<31} {:<72} {}", liar.name, liar.fault, liar.caught_by));
}

int check_liars(const std::string& backend, const CheckOptions& options, int64_t drawn, bool as_json) {
  const KeptAnswers kept;
  seed_liars(options.seed);
  const auto all = accused(backend, options, drawn);
  if (all.empty())
    throw Error(invalid("no liar is named so; weft check {} --liars --drawn 0 names all", backend));
  LastWords words(kMostSeconds);
  LiveLine live(!as_json);
  if (!as_json) fmt::print("{:<31} {:<72} {}\n", "liar", "fault", "the first case that catches it");
  const auto start = Clock::now();
  size_t done = 0, caught = 0, left_out = 0;
  for (const Accused& one : all) {
    live.show(
        fmt::format("{} of {}   {}", done, all.size(), time_left(done, all.size(), seconds_since(start))));
    const auto repeat = fmt::format("{} --only {}", options.repeat, one.name);
    words.at(repeat);
    const Trial t = one.trial();
    ++done, caught += t.caught(), left_out += !t.left_out.empty();
    live.clear();
    print(t, repeat, as_json);
  }
  const size_t tried = all.size() - left_out;
  Show(as_json).result({{"backend", backend}, {"liars", tried}, {"caught", caught}, {"left_out", left_out}},
                       fmt::format("\n{} of {} liars caught, {} left out, in {:.1f} s", caught, tried,
                                   left_out, seconds_since(start)));
  return caught == tried ? 0 : 1;
}

}  // namespace weft::cli
