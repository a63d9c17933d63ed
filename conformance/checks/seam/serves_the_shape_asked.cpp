#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::serves_the_shape_asked {
namespace {

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const char* op : {"add", "mul"})
    run.run(op, [&] {
      for (const int64_t n : {4, 9, 6, 4})
        if (auto f = differs(rig, {op, {counting({n}), counting({n}, 2)}}, "another shape"); !f.empty())
          return Found::wrong(f);
      return Found();
    });
}

}  // namespace

extern const Check check = {"serves_the_shape_asked", "a kernel that ran one shape runs another", run};

}  // namespace weft::conformance::checks::serves_the_shape_asked
