#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/prctl.h>

#include <algorithm>
#include <filesystem>

#include "base/thread_pool.h"
#include "lab/kernels/contest.h"
#include "lab/kernels/python.h"
#include "lab/results/result.h"
#include "python/src/convert.h"
#include "python/src/lab.h"
#include "python/src/module.h"
#include "python/src/object.h"
#include "weft/backends.h"
#include "weft/weft.h"

// The kernel lab: python/weft/lab makes objects of what these functions say.
namespace weft::python {
namespace {

using namespace nb::literals;

// {"op", "where", "dtype", "inputs": [(shape, dtype or None, low, high)], "attrs"}: an operation of one's
// own.
lab::Operation operation_from(const nb::dict& d) {
  lab::Operation o;
  o.op = nb::cast<std::string>(d["op"]), o.where = nb::cast<std::string>(d["where"]);
  for (const auto& known : lab::operation_files())
    if (known.op == o.op) o.own = known.file().definition, o.own_cases = known.file().cases;
  o.dtype = dtype_from(nb::object(d["dtype"]).ptr());
  for (const nb::handle i : nb::borrow<nb::list>(d["inputs"])) {
    const auto sizes = nb::cast<std::vector<int64_t>>(i[0]);
    const conformance::Dims shape(sizes.begin(), sizes.end());
    if (nb::object(i[1]).is_none())
      o.call.inputs.push_back(conformance::normal(shape));
    else
      o.call.inputs.push_back(conformance::integers(shape, nb::cast<int>(i[2]), nb::cast<int>(i[3]))
                                  .as(dtype_from(nb::object(i[1]).ptr())));
  }
  for (const auto [key, value] : nb::borrow<nb::dict>(d["attrs"]))
    o.call.attrs.push_back({nb::cast<std::string>(key), attr_from(value)});
  o.definition();  // raises for an op that is none
  if (o.call.inputs.empty())
    throw Error(invalid("weft.lab: {} has no operands, and the lab changes one before each launch", o.op));
  for (const auto& i : o.call.inputs)
    if (std::ranges::find(i.shape, 0) != i.shape.end())
      throw Error(invalid("weft.lab: an operand of {} has no elements; there is nothing to time", o.op));
  raise_if(lab::take_rows(o));
  return o;
}

std::vector<lab::Operation> operations_from(const nb::list& wanted) {
  std::vector<lab::Operation> all;
  for (const nb::handle w : wanted) {
    if (nb::isinstance<nb::dict>(w)) {
      all.push_back(operation_from(nb::borrow<nb::dict>(w)));
    } else {
      const auto op = nb::cast<std::string>(w);
      auto found = value_or_raise(
          lab::operations_of({.ops = op.empty() ? std::vector<std::string>() : std::vector{op}}));
      std::ranges::move(found, std::back_inserter(all));
    }
  }
  return all;
}

// A kernel's process is this Python, with the plug-ins of this process.
std::vector<std::string> worker_command(int threads) {
  auto words = lab::python_command();
  words.insert(words.end(), {"--worker", "--threads", std::to_string(threads)});
  for (const auto& b : get_backends()) {
    std::error_code none;
    if (std::filesystem::is_regular_file(b.origin, none))
      words.insert(words.end(), {"--plugin", std::filesystem::absolute(b.origin).string()});
  }
  return words;
}

lab::ContestOptions options_from(const nb::dict& d) {
  lab::ContestOptions o;
  o.process.command = worker_command(nb::cast<int>(d["threads"]));
  o.process.seconds = nb::cast<double>(d["timeout"]);
  o.process.device = nb::cast<std::string>(d["device"]);
  o.threads = nb::cast<int>(d["threads"]);
  o.seconds = nb::cast<double>(d["seconds"]), o.margin = nb::cast<double>(d["margin"]);
  o.confidence = nb::cast<double>(d["confidence"]), o.sample = nb::cast<double>(d["sample"]);
  o.cold = nb::cast<bool>(d["cold"]), o.quick = nb::cast<bool>(d["quick"]);
  o.seed = nb::cast<uint64_t>(d["seed"]);
  if (o.seed == 0) o.seed = lab::drawn_seed();
  return o;
}

// While it lives, this process's memory, and the seed in it, is not a kernel's to read.
class Unreadable {
 public:
  Unreadable() : before_(::prctl(PR_GET_DUMPABLE)) { ::prctl(PR_SET_DUMPABLE, 0); }
  ~Unreadable() { ::prctl(PR_SET_DUMPABLE, before_); }
  Unreadable(const Unreadable&) = delete;

 private:
  int before_;
};

// A line of a result file, as weft lab --out writes it; the limits of the machine are not measured.
std::string compare(const std::vector<std::string>& contenders, const nb::handle operation, size_t which,
                    const nb::dict& given, const nb::callable& see) {
  nb::list one;
  one.append(operation);
  const auto options = options_from(given);
  const auto operations = operations_from(one);
  const Unreadable unreadable;
  const auto compared = [&] {
    const Unlocked released;
    const lab::Setting setting{.machine = lab::this_machine(contenders, lab::WithLimits::no),
                               .version = weft_version(),
                               .commit = "unknown"};
    const auto found =
        value_or_raise(lab::compare(operations.at(which), contenders, options, [&](const std::string& what) {
          const Locked locked;
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
          see(what);
        }));
    return lab::result_line(found, options, setting);
  }();
  return compared;
}

nb::list operations_as_dicts(const nb::list& wanted) {
  nb::list all;
  for (const auto& o : operations_from(wanted)) {
    nb::dict d;
    d["op"] = o.op, d["label"] = o.label();
    all.append(d);
  }
  return all;
}

nb::list offers() {
  nb::list all;
  for (const lab::Provider* p : lab::all_providers()) {
    std::vector<lab::Offer> offered;
    {
      const Unlocked released;
      offered = p->offers();
    }
    nb::list contenders;
    for (const auto& o : offered) contenders.append(nb::make_tuple(o.contender, o.reason));
    nb::dict d;
    d["provider"] = p->name, d["takes"] = p->takes_what, d["contenders"] = contenders;
    all.append(d);
  }
  return all;
}

}  // namespace

AttrValue attr_from(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  if (PyTuple_Check(value.ptr()) || PyList_Check(value.ptr())) return dims_from(value.ptr(), "an attribute");
  return integer_from(value.ptr(), "an attribute");
}

void bind_lab(nb::module_& m) {
  m.def(
      "set_python",
      [](const std::string& program, const std::string& path) {
        lab::this_python().program = program, lab::this_python().path = path;
      },
      "program"_a, "path"_a, "Which Python runs kernels, and a folder from which it imports weft.");
  m.def("compare", compare, "contenders"_a, "operation"_a, "which"_a, "options"_a, "see"_a,
        nb::sig("def compare(contenders: Sequence[str], operation: str | dict[str, Any], which: int, "
                "options: dict[str, Any], "
                "see: Callable[[str], object]) -> str"),
        "Compares contenders on one of the operations() of an op, or on the one that a dict says. JSON, as "
        "src/lab/results/result.schema.json has it.");
  m.def("operations", operations_as_dicts, "wanted"_a,
        nb::sig("def operations(wanted: list[Any]) -> list[dict[str, Any]]"),
        "The operations of the table with these ops, and those that dicts say.");
  m.def("offers", offers, nb::sig("def offers() -> list[dict[str, Any]]"),
        "What each provider knows without being told.");
  bind_lab_worker(m);
}

}  // namespace weft::python
