#include "base/dims.h"
#include "fuzz/target.h"

namespace weft::fuzz {

// Its bounds hold for every value that its symbols may have; here, at their ends.
static void expect_bounds(const Dim& d, const std::vector<Symbol>& symbols) {
  for (size_t ends = 0; ends < size_t{1} << symbols.size(); ++ends) {
    Bindings at;
    for (size_t i = 0; i < symbols.size(); ++i)
      expect(at.bind(symbols[i].name, ends >> i & 1 ? symbols[i].max : symbols[i].min).ok(),
             "a symbol is bound once");
    auto value = evaluate(d, at);
    expect(value.ok(), "a dimension whose symbols are bound has a value");
    expect(d.min() <= *value && *value <= d.max(), "a dimension lies within its bounds: " + d.text());
  }
}

// A type, as a program's file says it: "f32[4, batch*16]".
void target(std::string_view input) {
  const std::vector<Symbol> symbols = {{"batch", 1, 64}, {"n", 0, 1000}, {"huge", 0, int64_t{1} << 61}};
  auto type = read_type(input, symbols);
  if (refused(type)) return;
  for (const Dim d : type->shape) {
    auto again = parse_dim(d.text(), symbols);
    expect(again.ok() && *again == d, "what is printed is read as the same: " + d.text());
    expect_bounds(d, symbols);
  }
}

}  // namespace weft::fuzz
