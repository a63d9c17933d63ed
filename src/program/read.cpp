#include <bit>
#include <cstring>
#include <unordered_map>

#include "base/dims.h"
#include "base/shown.h"
#include "plan_generated.h"
#include "program/container.h"
#include "program/plan.h"

namespace weft::program {
namespace {

template <class T>
using Tables = const flatbuffers::Vector<flatbuffers::Offset<T>>*;

/// Reads a plan whose offsets the FlatBuffers verifier has passed. Parts of a plan may be shared, so a small
/// file can describe a huge program; a budget in proportion to the file stops that.
class PlanReader {
 public:
  explicit PlanReader(size_t file_bytes) : budget_(64 * uint64_t{file_bytes} + 65536) {}

  Result<CompiledProgram> read(const fb::Plan& f) {
    CompiledProgram p;
    WEFT_CHECK(text(f.name(), p.name));
    WEFT_CHECK(all(f.symbols(), symbols_, &PlanReader::symbol));
    WEFT_CHECK(check_symbols(symbols_));
    p.symbols = symbols_;
    WEFT_CHECK(all(f.values(), p.values, &PlanReader::value));
    WEFT_CHECK(all(f.calls(), p.calls, &PlanReader::call));
    WEFT_CHECK(all(f.regions(), p.regions, &PlanReader::region));
    WEFT_CHECK(all(f.inputs(), p.inputs, &PlanReader::port));
    WEFT_CHECK(all(f.outputs(), p.outputs, &PlanReader::port));
    WEFT_CHECK(all(f.states(), p.states, &PlanReader::state));
    WEFT_CHECK(all(f.weights(), p.weights, &PlanReader::weight));
    return p;
  }

 private:
  Status charge(uint64_t bytes) {
    if (bytes > budget_) return invalid("it unfolds to far more than its size");
    budget_ -= bytes;
    return {};
  }
  Status text(const flatbuffers::String* s, std::string& out) {
    if (!s) return {};
    WEFT_CHECK(charge(s->size()));
    out.assign(s->data(), s->size());
    return {};
  }
  template <class T>
  Status numbers(const flatbuffers::Vector<T>* v, std::vector<T>& out) {
    if (!v) return {};
    WEFT_CHECK(charge(v->size() * sizeof(T)));
    out.assign(v->begin(), v->end());
    return {};
  }
  template <class F, class T>
  Status all(Tables<F> items, std::vector<T>& out, Status (PlanReader::*one)(const F&, T&)) {
    if (!items) return {};
    WEFT_CHECK(charge(uint64_t{items->size()} * 8));
    for (const F* item : *items) WEFT_CHECK((this->*one)(*item, out.emplace_back()));
    return {};
  }

  Status symbol(const fb::Symbol& f, Symbol& s) {
    s.min = f.min(), s.max = f.max();
    return text(f.name(), s.name);
  }
  /// Texts of types are stored once, so each is parsed once.
  Status value(const fb::Value& f, TensorSpec& v) {
    auto known = types_.find(f.type());
    if (known == types_.end()) {
      WEFT_CHECK(charge(f.type()->size()));
      WEFT_TRY(TensorType type, read_type(f.type()->string_view(), symbols_));
      known = types_.emplace(f.type(), std::move(type)).first;
    }
    WEFT_CHECK(charge(known->second.shape.size() * sizeof(Dim)));
    v.type = known->second;
    v.layout = f.layout();
    return {};
  }
  Status port(const fb::Port& f, Port& p) {
    p.value = f.value();
    return text(f.name(), p.name);
  }
  Status state(const fb::State& f, StateSpec& s) {
    s.before = f.before(), s.after = f.after(), s.blob = f.blob();
    return text(f.name(), s.name);
  }
  Status weight(const fb::Weight& f, WeightSpec& w) {
    w.value = f.value(), w.blob = f.blob();
    return text(f.name(), w.name);
  }

  Status attr(const fb::Attr& f, Attr& a) {
    WEFT_CHECK(text(f.name(), a.name));
    const std::string_view words = f.text() ? f.text()->string_view() : std::string_view();
    WEFT_CHECK(charge(words.size()));
    switch (f.kind()) {
      case fb::AttrKind::integer: a.value = f.number(); return {};
      case fb::AttrKind::real: a.value = std::bit_cast<double>(f.number()); return {};
      case fb::AttrKind::text: a.value = std::string(words); return {};
      case fb::AttrKind::dims: {
        WEFT_TRY(a.value, read_shape(words, symbols_));
        return {};
      }
      case fb::AttrKind::bytes: {
        const auto* raw = f.bytes();
        WEFT_CHECK(charge(raw ? raw->size() : 0));
        a.value =
            weft::Bytes{raw ? std::string(reinterpret_cast<const char*>(raw->data()), raw->size()) : ""};
        return {};
      }
      case fb::AttrKind::none: break;
    }
    return invalid("attribute {} is of kind {}, which does not exist", shown(a.name),
                   static_cast<int>(f.kind()));
  }

  Status call(const fb::Call& f, KernelCall& c) {
    WEFT_CHECK(text(f.op(), c.op));
    WEFT_CHECK(text(f.where(), c.where));
    c.version = f.version(), c.region = f.region();
    WEFT_CHECK(all(f.attrs(), c.attrs, &PlanReader::attr));
    for (uint32_t i = 0; i < c.attrs.size(); ++i) {
      if (!f.attrs()->Get(i)->is_default()) continue;
      WEFT_CHECK(charge(c.attrs[i].name.size()));
      c.defaults.push_back(c.attrs[i].name);
    }
    WEFT_CHECK(numbers(f.inputs(), c.inputs));
    WEFT_CHECK(numbers(f.outputs(), c.outputs));
    if (!f.updates()) return {};
    WEFT_CHECK(charge(f.updates()->size() * sizeof(Update)));
    for (const fb::Update* u : *f.updates()) c.updates.push_back({u->output(), u->input()});
    return {};
  }

  Status region(const fb::Region& f, Region& r) {
    WEFT_CHECK(text(f.pattern(), r.pattern));
    r.n_inputs = f.n_inputs();
    WEFT_CHECK(all(f.values(), r.values, &PlanReader::value));
    WEFT_CHECK(all(f.calls(), r.calls, &PlanReader::call));
    return numbers(f.outputs(), r.outputs);
  }

  uint64_t budget_;
  std::vector<Symbol> symbols_;
  std::unordered_map<const flatbuffers::String*, TensorType> types_;
};

/// Every error in a file is corruption of its section, whichever rule found it.
Status corrupt_in(std::string_view section, Status status) {
  if (status.ok()) return status;
  return fail(Code::corrupt, "{}: {}", section, status.message());
}

}  // namespace

Result<std::span<const std::byte>> take_bytes(std::span<const std::byte>& rest) {
  uint64_t n = 0;
  if (rest.size() < sizeof n) return invalid("it ends inside a length");
  std::memcpy(&n, rest.data(), sizeof n);
  rest = rest.subspan(sizeof n);
  if (n > rest.size()) return invalid("a text of {} bytes where {} are left", n, rest.size());
  const auto bytes = rest.first(n);
  rest = rest.subspan(n);
  return bytes;
}
Result<std::string> take_text(std::span<const std::byte>& rest) {
  WEFT_TRY(const auto bytes, take_bytes(rest));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<CompiledProgram> read_plan(std::span<const std::byte> bytes) {
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) return invalid("{} bytes are too many", bytes.size());
  flatbuffers::Verifier::Options limits;
  limits.max_depth = 8;  // the schema nests 4 deep
  limits.max_tables =
      static_cast<uint32_t>(bytes.size() / 8) + 1;  // a table and the offset to it take 8 bytes
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), limits);
  if (!fb::VerifyPlanBuffer(verifier)) return invalid("it is not a well-formed FlatBuffer of a plan");
  return PlanReader(bytes.size()).read(*fb::GetPlan(bytes.data()));
}

Status read_origin(std::span<const std::byte> bytes, CompiledProgram& program) {
  while (!bytes.empty()) {
    WEFT_TRY(std::string key, take_text(bytes));
    WEFT_TRY(std::string value, take_text(bytes));
    program.origin.emplace_back(std::move(key), std::move(value));
  }
  return {};
}

Result<CompiledProgram> deserialize(Blob bytes, const OpenWeights& weights) {
  // The plan is read in place, so its integers must be aligned.
  if (reinterpret_cast<uintptr_t>(bytes.data) % 64 != 0) bytes = Blob::copy_of(bytes.data, bytes.size);
  WEFT_TRY(const Container file, open_container({bytes.data, bytes.size}));
  if (file.holds == Holds::weights)
    return invalid("header: it holds the weights of a program; load the program, which lies beside it");
  auto program = read_plan(file.plan);
  if (!program.ok()) return corrupt_in("plan", program.take_status());
  WEFT_CHECK(corrupt_in("origin", read_origin(file.origin, *program)));
  WEFT_CHECK(corrupt_in("test vectors", read_tests(file.tests, bytes.owner, *program)));
  WEFT_CHECK(corrupt_in("device code", read_device_code(file.code, bytes.owner, *program)));
  program->skipped = file.skipped;
  for (const auto blob : file.blobs) program->blobs.push_back({blob.data(), blob.size(), bytes.owner});
  if (file.holds == Holds::program_beside) WEFT_CHECK(take_beside(file.beside, weights, *program));
  WEFT_CHECK(corrupt_in("plan", verify(*program)));
  WEFT_CHECK(corrupt_in("test vectors", check_tests(*program)));
  return program;
}

}  // namespace weft::program
