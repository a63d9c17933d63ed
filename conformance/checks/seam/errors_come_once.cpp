#include "conformance/check.h"
#include "conformance/seam/usual.h"

// A failing launch among others is reported once, by its queue, whatever runs around it.
namespace weft::conformance::checks::errors_come_once {
namespace {

/// Launches of one plan, which stay in the queue until `wait`.
class Line {
 public:
  Line(Rig& rig, seam::Queue& queue) : rig_(rig), queue_(queue) {}

  void good() { launch({"add", {counting({9}), counting({9}, 3)}}, false); }
  /// An invalid index.
  void bad() { launch({"gather", {counting({4}), array({1}, {70}, DType::i64)}}, true); }
  /// The queue's report, from the launch or now; then any wrong answers of the good launches.
  Status wait() {
    Status met = std::exchange(met_, Status()), later = queue_.synchronize();
    return met.ok() ? later : met;
  }
  Finding wrong_answer() {
    for (const auto& placed : good_) {
      const auto got = numbers(value_or_raise(rig_.download(*placed.results[0])));
      if (got[2] != 3 + 5) return fmt::format("a good launch among them gave {}, wanted 8", got[2]);
    }
    good_.clear();
    return {};
  }

 private:
  void launch(const Ask& ask, bool is_bad) {
    plans_.push_back(value_or_raise(rig_.plan(value_or_raise(describe(ask)))));
    auto placed = value_or_raise(rig_.place(*plans_.back(), ask));
    raise_if(rig_.queue->synchronize());  // operands are uploaded there, whichever queue launches
    if (Status s = rig_.enqueue(*plans_.back(), placed, queue_); !s.ok() && met_.ok()) met_ = std::move(s);
    (is_bad ? bad_ : good_).push_back(std::move(placed));
  }

  Rig& rig_;
  seam::Queue& queue_;
  std::vector<seam::PreparedPtr> plans_;
  std::vector<Rig::Placed> good_, bad_;
  Status met_;
};

// Some good launches, a bad one, and more good ones.
Found among(Rig& rig, int before, int behind) {
  const auto queue = value_or_raise(rig.device.open_queue());
  Line line(rig, *queue);
  for (int i = 0; i < before; ++i) line.good();
  line.bad();
  for (int i = 0; i < behind; ++i) line.good();
  const Status first = line.wait();
  if (first.ok()) return Found::wrong("an index that is none was no error");
  if (first.message().find("gather") == std::string::npos)
    return Found::wrong("the error does not name the kernel: " + first.message());
  if (const Status again = line.wait(); !again.ok())
    return Found::wrong("it is reported a second time: " + again.message());
  return Found::wrong(line.wrong_answer());
}

Found over_and_over(Rig& rig) {
  const auto queue = value_or_raise(rig.device.open_queue());
  for (int i = 1; i <= 40; ++i) {
    Line line(rig, *queue);
    if (i % 3) line.bad(), line.bad();
    line.good();
    const Status met = line.wait();
    if (met.ok() == (i % 3 != 0))
      return Found::wrong(met.ok() ? fmt::format("the failures of round {} were no error", i)
                                   : fmt::format("round {} had no failure: {}", i, met.message()));
    if (auto words = line.wrong_answer(); !words.empty()) return Found::wrong(words);
  }
  return {};
}

Found of_its_queue(Rig& rig) {
  const auto a = value_or_raise(rig.device.open_queue()), b = value_or_raise(rig.device.open_queue());
  Line bad(rig, *a), good(rig, *b);
  bad.bad(), good.good();
  if (const Status other = good.wait(); !other.ok())
    return Found::wrong("another queue reports it: " + other.message());
  if (bad.wait().ok()) return Found::wrong("its own queue does not report it");
  return Found::wrong(good.wrong_answer());
}

// A copy does not report errors: it moves its bytes, and the error stays pending.
Found behind_a_copy(Rig& rig) {
  const auto queue = value_or_raise(rig.device.open_queue());
  Line line(rig, *queue);
  const auto x = value_or_raise(rig.upload(counting({5})));
  raise_if(rig.queue->synchronize());
  line.bad();
  float got[5] = {};
  if (const Status s = queue->copy_out(got, *x->buffer.get(), 0, sizeof got); !s.ok())
    return Found::wrong("a copy reports what a launch did: " + s.message());
  if (got[4] != 5) return Found::wrong("a copy behind a launch that failed moves nothing");
  return Found::wrong(line.wait().ok() ? "after a copy, nobody reports the launch that failed" : "");
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const auto one = [&](const std::string& name, const std::function<Found()>& body) {
    run.run(name, [&] {
      if (rig.device.capability().dialect[0])
        return Found::skipped("text cannot raise: a wild index gives NaN there (docs/primitives.md)");
      return body();
    });
  };
  for (const auto& [before, behind] : {std::pair{0, 0}, {0, 1}, {1, 5}, {70, 3}})
    one(fmt::format("{} launches before it, {} behind", before, behind),
        [&] { return among(rig, before, behind); });
  one("over and over", [&] { return over_and_over(rig); });
  one("of one queue", [&] { return of_its_queue(rig); });
  one("behind a copy", [&] { return behind_a_copy(rig); });
}

}  // namespace

extern const Check check = {
    "errors_come_once", "a failure is reported once, by its queue, and what runs around it is right", run};

}  // namespace weft::conformance::checks::errors_come_once
