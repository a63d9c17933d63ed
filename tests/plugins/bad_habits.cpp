#include <unistd.h>

#include <csignal>

#include "table.hpp"

// Faults that are not there each time, for the tests of `weft check`: a difference of empty tensors spoils
// all sums that come after it, products never end where one tensor is empty, quotients of such end the
// process. And it says that it has two devices, of which there is one.
namespace {

using namespace weft::backend;
using namespace weft::shared;

bool spoilt = false;

bool is_empty(const Launch& l) { return l.output(0).size() == 0; }

template <class F, Outcome (*habit)(const Launch&)>
KernelRecord with_habit(const char* op) {
  static Outcome (*const good)(const Launch&) = weft::shared::detail::arithmetic_record<F>("").launch;
  KernelRecord record = weft::shared::detail::arithmetic_record<F>(op);
  record.launch = [](const Launch& l) {
    auto outcome = good(l);
    return outcome.good() ? habit(l) : outcome;
  };
  return record;
}

Outcome spoilt_sum(const Launch& l) {
  if (spoilt && !is_empty(l)) *l.output(0).data<char>() ^= 1;
  return Outcome::ok();
}
Outcome spoils_sums(const Launch& l) {
  spoilt |= is_empty(l);
  return Outcome::ok();
}
Outcome never_ends(const Launch& l) {
  while (is_empty(l)) ::pause();
  return Outcome::ok();
}
Outcome ends_all(const Launch& l) {
  if (is_empty(l)) ::raise(SIGSEGV);
  return Outcome::ok();
}

struct Habits {
  static constexpr const char* kName = "bad_habits";
  static constexpr const char* kKind = "cpu";
  static const char* label() { return "a plug-in of the tests"; }
  static constexpr const char* kNumerics = "computes in double, rounds each result once";
  static KernelTable& kernels() {
    static const std::array records = {
        with_habit<fn::Add, spoilt_sum>("add"), with_habit<fn::Sub, spoils_sums>("sub"),
        with_habit<fn::Mul, never_ends>("mul"), with_habit<fn::Div, ends_all>("div")};
    static KernelTable table(kName, {records});
    return table;
  }
};

}  // namespace

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  const weft_code code = HostDevice<Habits>::negotiate(host, backend, error);
  static const auto open = (*backend)->open_device;
  static weft_backend three = **backend;
  three.probe = [](weft_probe* p, weft_error*) {
    write(p, &weft_probe::n_devices, 3);
    return weft_code{WEFT_OK};
  };
  three.open_device = [](uint32_t ordinal, weft_device* d, weft_capability* c, weft_error* e) {
    return open(ordinal == 1 ? 0 : ordinal, d, c, e);
  };
  three.describe = nullptr;  // a report opens them
  *backend = &three;
  return code;
}
