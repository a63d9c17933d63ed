#include "link/share.h"

namespace weft::link {

std::shared_ptr<seam::PreparedKernel> ask_again(const FlatCall& call, seam::CallDesc desc, Devices devices) {
  const seam::PreparedKernel& before = *call.prepared;
  auto made = seam::prepare_with(*devices[call.device], before.kernel,
                                 std::make_shared<const seam::OwnedCall>(std::move(desc)));
  if (!made.ok()) return nullptr;
  std::shared_ptr<seam::PreparedKernel> prepared = std::move(made).value();
  const weft_plan &now = prepared->plan, &then = before.plan;
  if (now.workspace > then.workspace || now.determinism < then.determinism || now.precision > then.precision)
    return nullptr;
  prepared->why = before.why;
  return prepared;
}

Flow::Flow(const program::CompiledProgram& program, const FlatProgram& flat)
    : flat_(flat), facts_(flat.values.size()) {
  const auto read = [&](int32_t v, size_t at) {
    if (v < 0) return;
    Fact& fact = facts_[static_cast<size_t>(root(v))];
    if (fact.readers > 0 && fact.last == at) return;
    fact.before = fact.readers++ > 0 ? fact.last : at;
    fact.last = at;
  };
  for (size_t i = 0; i < flat.calls.size(); ++i) {
    for (const int32_t v : flat.calls[i].inputs) read(v, i);
    read(flat.calls[i].onto, i);
    for (const int32_t v : flat.calls[i].outputs) made(root(v), static_cast<int64_t>(i));
  }
  for (const auto& out : program.outputs) read(out.value, kEnd);
  for (const auto& s : program.states) read(s.after, kEnd);
}

int32_t Flow::root(int32_t value) const {
  while (flat_.values[static_cast<size_t>(value)].view_of >= 0)
    value = flat_.values[static_cast<size_t>(value)].view_of;
  return value;
}

void Flow::made(int32_t root_value, int64_t call) {
  const FlatValue& v = flat_.values[static_cast<size_t>(root_value)];
  Fact& fact = facts_[static_cast<size_t>(root_value)];
  fact.maker = call;
  fact.own = !v.overwritten && (v.over < 0 || facts_[static_cast<size_t>(root(v.over))].own);
}

void Flow::takes_over(int32_t value) {
  const auto at = static_cast<size_t>(root(value));
  facts_[at].own = !flat_.values[at].overwritten;
}

bool Flow::is_own(int32_t value) const {
  const auto at = static_cast<size_t>(root(value));
  return facts_[at].own &&
         flat_.values[at].type.bytes() == flat_.values[static_cast<size_t>(value)].type.bytes();
}

void Flow::becomes(int32_t value, int32_t other) {
  Fact& fact = facts_[static_cast<size_t>(root(other))];
  const int64_t maker = fact.maker;
  fact = facts_[static_cast<size_t>(value)], fact.maker = maker;
}

}  // namespace weft::link
