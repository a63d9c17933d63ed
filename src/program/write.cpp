#include <algorithm>
#include <bit>

#include "plan_generated.h"
#include "program/container.h"
#include "program/plan.h"

namespace weft::program {
namespace {

template <class T>
using Offset = flatbuffers::Offset<T>;

/// Writes the plan in one fixed order, so that equal programs give equal bytes. Equal texts are stored once.
class PlanWriter {
 public:
  std::string write(const CompiledProgram& p) {
    const auto plan = fb::CreatePlan(b_, text(p.name), all(p.symbols, &PlanWriter::symbol),
                                     all(p.values, &PlanWriter::value), all(p.calls, &PlanWriter::call),
                                     all(p.regions, &PlanWriter::region), all(p.inputs, &PlanWriter::port),
                                     all(p.outputs, &PlanWriter::port), all(p.states, &PlanWriter::state),
                                     all(p.weights, &PlanWriter::weight));
    fb::FinishPlanBuffer(b_, plan);
    return {reinterpret_cast<const char*>(b_.GetBufferPointer()), b_.GetSize()};
  }

 private:
  Offset<flatbuffers::String> text(std::string_view s) { return b_.CreateSharedString(s.data(), s.size()); }

  /// Each item through `one`, then the vector of them.
  template <class T, class F>
  Offset<flatbuffers::Vector<Offset<F>>> all(const std::vector<T>& items,
                                             Offset<F> (PlanWriter::*one)(const T&)) {
    std::vector<Offset<F>> out;
    out.reserve(items.size());
    for (const T& item : items) out.push_back((this->*one)(item));
    return b_.CreateVector(out);
  }

  Offset<fb::Symbol> symbol(const Symbol& s) { return fb::CreateSymbol(b_, text(s.name), s.min, s.max); }
  Offset<fb::Value> value(const TensorSpec& v) {
    return fb::CreateValue(b_, text(weft::text(v.type)), v.layout);
  }
  Offset<fb::Port> port(const Port& p) { return fb::CreatePort(b_, text(p.name), p.value); }
  Offset<fb::State> state(const StateSpec& s) {
    return fb::CreateState(b_, text(s.name), s.before, s.after, s.blob);
  }
  Offset<fb::Weight> weight(const WeightSpec& w) {
    return fb::CreateWeight(b_, text(w.name), w.value, w.blob);
  }

  Offset<fb::Attr> attr(const Attr& a, bool is_default) {
    const auto name = text(a.name);
    fb::AttrKind kind = fb::AttrKind::none;
    int64_t number = 0;
    Offset<flatbuffers::String> words;
    Offset<flatbuffers::Vector<uint8_t>> bytes;
    if (const auto* i = std::get_if<int64_t>(&a.value)) {
      kind = fb::AttrKind::integer, number = *i;
    } else if (const auto* d = std::get_if<double>(&a.value)) {
      kind = fb::AttrKind::real,
      number = std::bit_cast<int64_t>(*d);  // bits: keeps -0.0 and the payload of a NaN
    } else if (const auto* s = std::get_if<Shape>(&a.value)) {
      kind = fb::AttrKind::dims, words = text(weft::text(std::span<const Dim>(*s)));
    } else if (const auto* t = std::get_if<std::string>(&a.value)) {
      kind = fb::AttrKind::text, words = text(*t);
    } else {
      const auto& raw = std::get<weft::Bytes>(a.value).data;
      kind = fb::AttrKind::bytes,
      bytes = b_.CreateVector(reinterpret_cast<const uint8_t*>(raw.data()), raw.size());
    }
    return fb::CreateAttr(b_, name, kind, number, words, bytes, is_default);
  }

  Offset<fb::Call> call(const KernelCall& c) {
    const auto op = text(c.op), where = text(c.where);
    std::vector<Offset<fb::Attr>> attrs;
    for (const Attr& a : c.attrs)
      attrs.push_back(attr(a, std::find(c.defaults.begin(), c.defaults.end(), a.name) != c.defaults.end()));
    std::vector<fb::Update> updates;
    for (const Update& u : c.updates) updates.emplace_back(u.output, u.input);
    const auto attr_list = b_.CreateVector(attrs);
    const auto inputs = b_.CreateVector(c.inputs), outputs = b_.CreateVector(c.outputs);
    const auto update_list = b_.CreateVectorOfStructs(updates);
    return fb::CreateCall(b_, op, c.version, attr_list, inputs, outputs, update_list, c.region, where);
  }

  Offset<fb::Region> region(const Region& r) {
    const auto pattern = text(r.pattern);
    const auto values = all(r.values, &PlanWriter::value);
    const auto calls = all(r.calls, &PlanWriter::call);
    const auto outputs = b_.CreateVector(r.outputs);
    return fb::CreateRegion(b_, pattern, r.n_inputs, values, calls, outputs);
  }

  flatbuffers::FlatBufferBuilder b_;
};

}  // namespace

void append_count(std::string& out, uint64_t n) { out.append(reinterpret_cast<const char*>(&n), sizeof n); }

void append_text(std::string& out, std::string_view s) {
  append_count(out, s.size());
  out += s;
}

std::string write_plan(const CompiledProgram& program) { return PlanWriter().write(program); }

// Pairs of texts, each preceded by its length in 8 bytes.
std::string write_origin(const CompiledProgram& program) {
  std::string out;
  for (const auto& [key, value] : program.origin) append_text(out, key), append_text(out, value);
  return out;
}

std::string write_head(const CompiledProgram& program, std::string_view beside) {
  const std::string plan = write_plan(program), origin = write_origin(program), tests = write_tests(program),
                    code = write_device_code(program);
  return container_head({{"plan", plan},
                         {"origin", origin},
                         {"test vectors", tests},
                         {"device code", code},
                         {"beside", beside}},
                        beside.empty() ? std::span(program.blobs) : std::span<const Blob>(),
                        beside.empty() ? Holds::program : Holds::program_beside);
}

std::string serialize(const CompiledProgram& program) {
  std::string out = write_head(program);
  for (size_t i = 0; i < program.blobs.size(); ++i) {
    const Blob& blob = program.blobs[i];
    out.append(reinterpret_cast<const char*>(blob.data), blob.size);
    out.append(blob_padding(program.blobs, i), '\0');
  }
  return out;
}

}  // namespace weft::program
