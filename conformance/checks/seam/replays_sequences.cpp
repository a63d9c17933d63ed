#include "conformance/check.h"
#include "conformance/numbers.h"
#include "conformance/seam/script.h"

// Sequences: recorded once, run often, each time with other bindings.
namespace weft::conformance::checks::replays_sequences {
namespace {

using Memory = std::vector<std::unique_ptr<Rig::Operand>>;
using SequencePtr = std::unique_ptr<seam::Sequence>;

// Runs `body` with the script's sequence, or reports why there is none.
Found with_sequence(Script& script, const std::function<Finding(seam::Sequence&)>& body) {
  uint32_t refused = 0;
  auto made = script.record(refused);
  if (made.status().code() == Code::unsupported) return Found::refused(made.status().text());
  return Found::wrong(body(*value_or_raise(std::move(made))));
}

// Two bindings and one fixed buffer between them: to = (from + from) - 1, through the fixed buffer.
std::vector<Script::Step> simple_steps() { return {{"add", 0, 0, 2}, {"sub", 2, 3, 4}, {"", 4, 0, 1}}; }

// The same memory twice, then other memory, then the first again.
Found with_other_bindings(Rig& rig) {
  Script script(rig, 5, 2, simple_steps());
  script.fill_fixed({0, 0, 0, 1, 0});
  return with_sequence(script, [&](seam::Sequence& sequence) -> Finding {
    std::vector<Memory> memories;
    for (const double x : {3.0, 10.0, -4.0}) memories.push_back(script.memory({x, 77}));
    for (const size_t k : {0u, 0u, 1u, 2u, 0u, 1u}) {
      raise_if(sequence.run(*rig.queue, Script::handles(memories[k])));
      const double x = std::array{3.0, 10.0, -4.0}[k];
      if (auto words = script.wrong(memories[k], {x, 2 * x - 1}); !words.empty())
        return fmt::format("bindings {}: {}", k, words);
    }
    return {};
  });
}

// More runs than may be pending, without waits between them: handles are read when a run is enqueued.
Found many_runs(Rig& rig) {
  constexpr int kRuns = 50;
  Script script(rig, 5, 2, simple_steps());
  script.fill_fixed({0, 0, 0, 1, 0});
  return with_sequence(script, [&](seam::Sequence& sequence) -> Finding {
    std::vector<Memory> memories;
    for (int i = 0; i < kRuns; ++i) memories.push_back(script.memory({static_cast<double>(i), 77}));
    for (const auto& memory : memories) {
      auto handles = Script::handles(memory);
      raise_if(sequence.run(*rig.queue, handles));
      std::ranges::fill(handles, nullptr);
    }
    for (int i = 0; i < kRuns; ++i)
      if (auto words = script.wrong(memories[static_cast<size_t>(i)], {double(i), 2.0 * i - 1});
          !words.empty())
        return fmt::format("run {} of {}: {}", i, kRuns, words);
    return {};
  });
}

// Each run continues from the previous one's result.
Found state_is_kept(Rig& rig) {
  Script script(rig, 4, 1, {{"add", 2, 3, 1}, {"", 1, 0, 2}, {"", 2, 0, 0}});
  script.fill_fixed({0, 0, 5, 2});
  return with_sequence(script, [&](seam::Sequence& sequence) -> Finding {
    const Memory memory = script.memory({0});
    for (int i = 1; i <= 30; ++i) raise_if(sequence.run(*rig.queue, Script::handles(memory)));
    return script.wrong(memory, {5 + 2.0 * 30});
  });
}

// Launches and copies before and after it in the queue.
Found in_the_queues_order(Rig& rig) {
  Script script(rig, 2, 2, {{"add", 0, 0, 1}, {"", 1, 0, 0}});
  const auto one = array({Script::kElements}, {1});
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe({"add", {one, one}}))));
  const auto c = value_or_raise(rig.upload(one));
  const auto workspace = value_or_raise(rig.workspace(plan->plan));
  return with_sequence(script, [&](seam::Sequence& sequence) -> Finding {
    const Memory memory = script.memory({1, 0});
    double wanted = 1;
    for (int i = 0; i < 12; ++i) {
      raise_if(sequence.run(*rig.queue, Script::handles(memory)));  // 0 = 1 = 2 * 0
      const weft_tensor* in[] = {&memory[0]->c, &c->c};
      const weft_tensor* out[] = {&memory[1]->c};
      raise_if(seam::launch(*plan, *rig.queue, in, out, workspace ? &workspace->c : nullptr));
      raise_if(rig.queue->copy(*memory[0]->buffer.get(), 0, *memory[1]->buffer.get(), 0, one.bytes.size()));
      wanted = 2 * wanted + 1;
    }
    return script.wrong(memory, {wanted, wanted});
  });
}

// On two queues of the device in turn, each waiting for the other.
Found on_queues_in_turns(Rig& rig) {
  Script script(rig, 3, 2, {{"add", 0, 2, 1}, {"", 1, 0, 0}});
  script.fill_fixed({0, 0, 3});
  const auto other = value_or_raise(rig.device.open_queue());
  return with_sequence(script, [&](seam::Sequence& sequence) -> Finding {
    const Memory memory = script.memory({0, 0});
    raise_if(rig.queue->synchronize());
    seam::Queue* queues[] = {rig.queue.get(), other.get()};
    for (int i = 0; i < 20; ++i) {
      raise_if(sequence.run(*queues[i % 2], Script::handles(memory)));
      const uint64_t point = value_or_raise(queues[i % 2]->mark());
      raise_if(queues[(i + 1) % 2]->wait(*queues[i % 2], point));
    }
    raise_if(other->synchronize());
    return script.wrong(memory, {60, 60});
  });
}

// Steps that are ordered only by the memory that they touch.
Found any_steps_run(Rig& rig, Random random) {
  constexpr size_t kBuffers = 7, kBound = 3, kSteps = 18;  // keeps numbers exact: below 2^18 times the first
  Script script(rig, kBuffers, kBound, any_steps(random, kBuffers, kSteps));
  return with_sequence(script, [&](seam::Sequence& sequence) -> Finding {
    for (int run = 0; run < 3; ++run) {
      Script::Values values;
      for (size_t i = 0; i < kBuffers; ++i) values.push_back(static_cast<double>(random.bits() % 9));
      script.fill_fixed(values);
      const Memory memory = script.memory(values);
      raise_if(sequence.run(*rig.queue, Script::handles(memory)));
      const auto wanted = script.after(values);
      if (auto words = script.wrong(memory, wanted); !words.empty())
        return fmt::format("run {}: {}", run, words);
      if (auto words = script.wrong_fixed(wanted); !words.empty())
        return fmt::format("run {}: {}", run, words);
    }
    return {};
  });
}

// Two sequences that share plans, run in turn; one is freed while the other goes on.
Found beside_another(Rig& rig) {
  Script a(rig, 5, 2, simple_steps()), b(rig, 5, 2, simple_steps());
  a.fill_fixed({0, 0, 0, 1, 0}), b.fill_fixed({0, 0, 0, 2, 0});
  return with_sequence(a, [&](seam::Sequence& of_a) -> Finding {
    const Memory ma = a.memory({6, 0});
    uint32_t refused = 0;
    for (int i = 0; i < 5; ++i) {
      const SequencePtr of_b = value_or_raise(b.record(refused));
      const Memory mb = b.memory({double(i), 0});
      raise_if(of_b->run(*rig.queue, Script::handles(mb)));
      raise_if(of_a.run(*rig.queue, Script::handles(ma)));
      if (auto words = b.wrong(mb, {double(i), 2.0 * i - 2}); !words.empty()) return words;
      raise_if(rig.queue->synchronize());
    }
    return a.wrong(ma, {6, 11});
  });
}

// The host's own check: memory that one run would both write and read is refused.
Found overlap_is_refused(Rig& rig) {
  Script script(rig, 5, 2, simple_steps());
  return with_sequence(script, [&](seam::Sequence& sequence) -> Finding {
    const Memory memory = script.memory({1, 0});
    raise_if(rig.queue->synchronize());
    auto handles = Script::handles(memory);
    handles[1] = handles[0];
    if (sequence.run(*rig.queue, handles).ok()) return "one memory for two bindings, one of them written";
    handles.pop_back();
    if (sequence.run(*rig.queue, handles).ok()) return "fewer handles than bindings";
    return {};
  });
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  if (!rig.device.backend().make_sequence) {
    run.run("any sequence", [] { return Found::skipped("it records none"); });
    return;
  }
  run.run("with other bindings", [&] { return with_other_bindings(rig); });
  run.run("many runs pending", [&] { return many_runs(rig); });
  run.run("fixed memory is kept", [&] { return state_is_kept(rig); });
  run.run("in the queue's order", [&] { return in_the_queues_order(rig); });
  run.run("on two queues by turns", [&] { return on_queues_in_turns(rig); });
  run.run("beside another", [&] { return beside_another(rig); });
  run.run("memory that overlaps", [&] { return overlap_is_refused(rig); });
  for (uint64_t k = 0; k < 12; ++k) {
    Random random(run.options().seed * 1000 + k);
    run.run(fmt::format("any steps {}", k), [&] { return any_steps_run(rig, random); });
  }
}

}  // namespace

extern const Check check = {"replays_sequences",
                            "a sequence runs its steps in their order, with the memory of each run", run};

}  // namespace weft::conformance::checks::replays_sequences
