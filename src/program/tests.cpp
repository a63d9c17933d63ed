#include <cstring>

#include "base/dims.h"
#include "base/shown.h"
#include "program/plan.h"

// The section "test vectors": a count, then for each test its inputs and its wanted tensors, both with a
// count. A tensor is its name, its type as text and its bytes; a wanted one has the bytes of its allowed
// errors, too. Counts are 8 bytes, and so is the length before each text.
namespace weft::program {
namespace {

using Bytes = std::span<const std::byte>;

void append_blob(std::string& out, const Blob& b) {
  append_text(out, {reinterpret_cast<const char*>(b.data), b.size});
}
void append_tensor(std::string& out, const TestTensor& t) {
  append_text(out, t.name), append_text(out, text(t.type)), append_blob(out, t.bytes);
}

class TestReader {
 public:
  TestReader(Bytes bytes, const std::shared_ptr<const void>& owner) : rest_(bytes), owner_(owner) {}
  bool done() const { return rest_.empty(); }

  /// Each item takes 8 bytes at least, so no count makes the reader allocate more than there is.
  Result<uint64_t> count() {
    uint64_t n = 0;
    if (rest_.size() < sizeof n) return invalid("it ends inside a count");
    std::memcpy(&n, rest_.data(), sizeof n);
    rest_ = rest_.subspan(sizeof n);
    if (n > rest_.size() / 8) return invalid("{} items where {} bytes are left", n, rest_.size());
    return n;
  }
  Result<TestVector> test() {
    TestVector t;
    WEFT_TRY(const uint64_t inputs, count());
    for (uint64_t i = 0; i < inputs; ++i) WEFT_CHECK(tensor(t.inputs.emplace_back()));
    WEFT_TRY(const uint64_t wanted, count());
    for (uint64_t i = 0; i < wanted; ++i) {
      WEFT_CHECK(tensor(t.wanted.emplace_back()));
      WEFT_CHECK(blob(t.allowed.emplace_back()));
    }
    return t;
  }

 private:
  Status blob(Blob& b) {
    WEFT_TRY(const Bytes bytes, take_bytes(rest_));
    b = {bytes.data(), bytes.size(), owner_};
    return {};
  }
  Status tensor(TestTensor& t) {
    WEFT_TRY(t.name, take_text(rest_));
    WEFT_TRY(const std::string type, take_text(rest_));
    WEFT_TRY(t.type, read_type(type, {}));
    return blob(t.bytes);
  }

  Bytes rest_;
  const std::shared_ptr<const void>& owner_;
};

// ---- what they must be

Status check_tensor(const TestTensor& t, std::string_view name, const TensorType& want, Bindings& bindings) {
  if (t.name != name) return invalid("'{}' where '{}' was wanted", shown(t.name), shown(name));
  const auto mismatch = [&] {
    return invalid("{} is {}, got {}", shown(name), shown(text(want)), shown(text(t.type)));
  };
  if (t.type.dtype != want.dtype || t.type.rank() != want.rank()) return mismatch();
  auto bytes = static_cast<uint64_t>(byte_size(t.type.dtype));
  for (size_t d = 0; d < want.shape.size(); ++d) {
    const Dim have = t.type.shape[d];
    if (!have.is_const() || have.value() < 0 || !unify(want.shape[d], have.value(), bindings).ok())
      return mismatch();
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(have.value()), &bytes)) return mismatch();
  }
  if (bytes != t.bytes.size)
    return invalid("{} is {}, got {} bytes", shown(name), shown(text(t.type)), t.bytes.size);
  return {};
}

Status check_wanted(const TestTensor& t, const Blob& allowed, std::string_view name, const TensorType& want,
                    const Bindings& bindings) {
  auto type = want;
  for (Dim& d : type.shape) {
    WEFT_TRY(const int64_t size, evaluate(d, bindings));
    d = size;
  }
  Bindings none;
  WEFT_CHECK(check_tensor(t, name, type, none));
  const uint64_t elements = t.bytes.size / byte_size(t.type.dtype);
  if (allowed.size == 0 || allowed.size == elements * sizeof(float)) return {};
  return invalid("{} has {} elements, got {} bytes of allowed errors", shown(name), elements, allowed.size);
}

Status check_test(const CompiledProgram& p, const TestVector& t) {
  const auto type = [&](ValueId id) -> const TensorType& { return p.values[static_cast<size_t>(id)].type; };
  if (t.inputs.size() != p.inputs.size() || t.wanted.size() != p.outputs.size() + p.states.size() ||
      t.allowed.size() != t.wanted.size())
    return invalid("{} inputs and {} results; the program has {} and {}", t.inputs.size(), t.wanted.size(),
                   p.inputs.size(), p.outputs.size() + p.states.size());
  Bindings bindings;
  for (size_t i = 0; i < t.inputs.size(); ++i)
    WEFT_CHECK(check_tensor(t.inputs[i], p.inputs[i].name, type(p.inputs[i].value), bindings));
  for (const Symbol& s : p.symbols) {
    const int64_t* value = bindings.find(s.name);
    if (!value || *value < s.min || *value > s.max)
      return invalid("symbol {} must be in {}..{}", s.name, s.min, s.max);
  }
  for (size_t i = 0; i < t.wanted.size(); ++i) {
    const size_t state = i - p.outputs.size();
    const bool output = i < p.outputs.size();
    WEFT_CHECK(check_wanted(t.wanted[i], t.allowed[i], output ? p.outputs[i].name : p.states[state].name,
                            type(output ? p.outputs[i].value : p.states[state].after), bindings));
  }
  return {};
}

}  // namespace

std::string write_tests(const CompiledProgram& program) {
  std::string out;
  if (program.tests.empty()) return out;
  append_count(out, program.tests.size());
  for (const TestVector& t : program.tests) {
    append_count(out, t.inputs.size());
    for (const auto& tensor : t.inputs) append_tensor(out, tensor);
    append_count(out, t.wanted.size());
    for (size_t i = 0; i < t.wanted.size(); ++i) {
      append_tensor(out, t.wanted[i]);
      append_blob(out, t.allowed[i]);
    }
  }
  return out;
}

Status read_tests(Bytes bytes, const std::shared_ptr<const void>& owner, CompiledProgram& program) {
  if (bytes.empty()) return {};
  TestReader reader(bytes, owner);
  WEFT_TRY(const uint64_t n, reader.count());
  if (n == 0) return invalid("it is there, and holds none");
  for (uint64_t i = 0; i < n; ++i) {
    WEFT_TRY(auto test, reader.test());
    program.tests.push_back(std::move(test));
  }
  if (!reader.done()) return invalid("bytes follow the last one");
  return {};
}

Status check_tests(const CompiledProgram& program) {
  for (size_t i = 0; i < program.tests.size(); ++i)
    WEFT_CHECK(check_test(program, program.tests[i]).at(fmt::format("test {}", i)));
  return {};
}

}  // namespace weft::program
