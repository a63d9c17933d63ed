#include <deque>
#include <map>
#include <string>
#include <vector>

#include "conformance/liars/liar.h"

// Constants packed incorrectly, or mixed up.
namespace weft::conformance {
namespace {

// The bytes that the call's packings request.
uint64_t packed_bytes(const weft_plan* plan, uint32_t input) { return plan->packings[input]->bytes; }
char* packed_data(const weft_tensor* t) { return backend::TensorView(t).data<char>(); }

// Does not write some of the last bytes.
class PacksTooLittle : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code pack(const weft_plan* plan, uint32_t input, const weft_tensor* from, const weft_tensor* to,
                 weft_queue q, weft_error* e) override {
    const uint64_t bytes = packed_bytes(plan, input), left = std::min(left_, bytes);
    char* end = packed_data(to) + bytes - left;
    const std::vector<char> before(end, end + left);
    const weft_code code = Drawn::pack(plan, input, from, to, q, e);
    std::ranges::copy(before, end);
    return code;
  }

 private:
  const uint64_t left_ = uint64_t{1024} << between(random_, 0, 1);
};

// Packs the first constant of a size and uses it for every other one.
class PacksTheFirst : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code pack(const weft_plan* plan, uint32_t input, const weft_tensor* from, const weft_tensor* to,
                 weft_queue q, weft_error* e) override {
    const uint64_t bytes = packed_bytes(plan, input);
    const weft_code code = Wrapped::pack(plan, input, from, to, q, e);
    if (code != WEFT_OK) return code;
    const char* now = packed_data(to);
    const auto& first = first_.try_emplace(plan->packings[input]->id, now, now + bytes).first->second;
    std::ranges::copy(first, packed_data(to));
    return WEFT_OK;
  }

 private:
  std::map<std::string, std::vector<char>> first_;
};

// Launches of a plan read the constant that was packed last.
class ReadsTheLastPacked : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code pack(const weft_plan* plan, uint32_t input, const weft_tensor* from, const weft_tensor* to,
                 weft_queue q, weft_error* e) override {
    const weft_code code = Wrapped::pack(plan, input, from, to, q, e);
    last_[plan->call].assign(packed_data(to), packed_data(to) + packed_bytes(plan, input));
    return code;
  }
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const auto last = last_.find(l->plan->call);
    if (last == last_.end()) return Wrapped::launch(l, e);
    std::vector<const weft_tensor*> in(l->inputs, l->inputs + l->plan->call->n_inputs);
    std::vector<weft_tensor> other(in.size());
    for (uint32_t i = 0; i < in.size(); ++i)
      if (l->plan->packings[i]) {
        other[i] = *in[i], in[i] = &other[i];
        other[i].dl.data = last->second.data(), other[i].dl.byte_offset = 0;
      }
    weft_launch changed = *l;
    changed.inputs = in.data();
    return Wrapped::launch(&changed, e);
  }
  void released(const weft_call& call) override { last_.erase(&call); }

 private:
  std::map<const weft_call*, std::vector<char>> last_;  // by plan, each of which has a call of its own
};

// Requests less memory than it writes.
class AsksForTooLittle : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void prepared(weft_plan& plan) override {
    if (!plan.packings) return;
    auto& own = own_.emplace_back();
    for (uint32_t i = 0; i < plan.call->n_inputs; ++i) {
      own.list.push_back(nullptr);
      if (!plan.packings[i]) continue;
      own.packing = *plan.packings[i];
      own.packing.bytes -= 64;
      own.list.back() = &own.packing;
    }
    plan.packings = own.list.data();
  }

 private:
  struct Own {
    weft_packing packing{};
    std::vector<const weft_packing*> list;
  };
  std::deque<Own> own_;
};

constexpr Liar kPackingsLiars[] = {
    {"liar_packs_too_little", "native", "leaves the end of a packed constant as it was",
     "packs_constants/linear ", make_liar<PacksTooLittle>, lacks_host_memory},
    {"liar_packs_the_first", "native", "packs one constant, and takes it for all others of its size",
     "packs_constants/linear ", make_liar<PacksTheFirst>, lacks_host_memory},
    {"liar_reads_the_last_packed", "native", "reads the constant that was packed last",
     "packs_constants/matmul ", make_liar<ReadsTheLastPacked>, lacks_host_memory},
    {"liar_asks_for_too_little", "native", "writes more packed bytes than it asked for",
     "packs_constants/conv ", make_liar<AsksForTooLittle>},
};

}  // namespace

Liars packings_liars() { return kPackingsLiars; }

}  // namespace weft::conformance
