#include <algorithm>
#include <charconv>

#include "lab/kernels/operation.h"

// Which operations are compared: by name, dtype and sizes.
namespace weft::lab {
namespace {

// Operands of more elements than this are a slip of the pen: the lab keeps several copies of each.
constexpr int64_t kMostElements = int64_t{1} << 30;

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(by)) != text.npos; text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  return parts.push_back(text), parts;
}

// "x [rows, n]" has two axes.
size_t rank_of(std::string_view what) { return static_cast<size_t>(std::ranges::count(what, ',')) + 1; }

std::string wants(const OperationFile& file) {
  std::string all;
  for (const char* shape : file.shapes) all += (all.empty() ? "" : ", ") + std::string(shape);
  return all;
}

Result<conformance::Dims> parse_dims(std::string_view text) {
  conformance::Dims dims;
  int64_t elements = 1;
  for (const auto part : split(text, 'x')) {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (error != std::errc() || end != part.data() + part.size() || n < 1)
      return invalid(
          "'{}' of '{}' is no size; a shape is whole numbers above 0 with x between them, as 1024x64", part,
          text);
    if (n > kMostElements / elements)
      return invalid("'{}' has more than {} elements, which is the most of an operand", text, kMostElements);
    dims.push_back(n), elements *= n;
  }
  return dims;
}

Result<Shapes> parse_shapes(const NamedOperationFile& named, const OperationFile& file,
                            std::string_view text) {
  Shapes shapes;
  for (const auto part : split(text, ',')) {
    WEFT_TRY(auto dims, parse_dims(part));
    shapes.push_back(std::move(dims));
  }
  bool fits = shapes.size() == file.shapes.size();
  for (size_t i = 0; fits && i < shapes.size(); ++i) fits = shapes[i].size() == rank_of(file.shapes[i]);
  if (!fits)
    return invalid("the sizes of {} are those of {}, with commas between operands; got '{}'", named.op,
                   wants(file), text);
  return shapes;
}

Operation operation_of(const NamedOperationFile& named, const OperationFile& file, std::string where,
                       const Shapes& shapes, const std::vector<Attr>& attrs, DType dtype) {
  const bool of_integers = !is_float(dtype) && file.make_of_integers;
  Sized at = (of_integers ? file.make_of_integers : file.make)(shapes);
  at.attrs.insert(at.attrs.end(), attrs.begin(), attrs.end());
  return {.op = named.op,
          .where = std::move(where),
          .call = {.inputs = std::move(at.inputs), .attrs = std::move(at.attrs)},
          .dtype = dtype,
          .rows = std::move(at.rows),
          .touched = at.touched,
          .own = file.definition,
          .own_cases = file.cases};
}

Result<std::vector<DType>> dtypes_of(const std::vector<std::string>& names) {
  std::vector<DType> dtypes;
  for (const auto& name : names) {
    const auto t = dtype_from_name(name);
    if (!t)
      return invalid(
          "no dtype is named '{}'; the lab compares kernels of f32, f16, bf16, f8e4m3, f8e5m2 and i8", name);
    dtypes.push_back(*t);
  }
  return dtypes;
}

Status add(const Choice& choice, const std::vector<DType>& wanted, const NamedOperationFile& named,
           std::vector<Operation>& all) {
  const OperationFile file = named.file();
  std::vector<DType> dtypes;
  if (wanted.empty()) dtypes = {file.dtypes[0]};
  for (const DType t : wanted)
    if (std::ranges::find(file.dtypes, t) != file.dtypes.end()) dtypes.push_back(t);
  for (const DType t : dtypes) {
    const auto put = [&](std::string where, const Shapes& shapes, const std::vector<Attr>& attrs) {
      all.push_back(operation_of(named, file, std::move(where), shapes, attrs, t));
    };
    for (const auto& words : choice.shapes) {
      WEFT_TRY(const auto shapes, parse_shapes(named, file, words));
      put("as asked", shapes, file.sizes[0].attrs);
      WEFT_CHECK(lab::describe(ask_of(all.back())).take_status());
    }
    if (!choice.shapes.empty()) continue;
    if (choice.sweep)
      for (const auto& shapes : file.sweep) put("sweep", shapes, file.sizes[0].attrs);
    else
      for (const auto& size : file.sizes) put(size.where, size.shapes, size.attrs);
  }
  return {};
}

std::vector<Rows> rows_alike(const Operation& o) {
  const auto files = operation_files();
  const auto named = std::ranges::find(files, o.op, &NamedOperationFile::op);
  if (named == files.end()) return {};
  const auto file = named->file();
  if (file.rows) return file.rows(o.call.inputs, o.call.attrs);
  const auto rank = [](const conformance::Input& i) { return i.shape.size(); };
  for (const auto& size : file.sizes) {
    const auto known = operation_of(*named, file, size.where, size.shapes, size.attrs, o.dtype);
    if (known.call.attrs == o.call.attrs &&
        std::ranges::equal(known.call.inputs, o.call.inputs, {}, rank, rank))
      return known.rows;
  }
  return {};
}

}  // namespace

Status take_rows(Operation& o) {
  o.rows = rows_alike(o);
  WEFT_TRY(const auto call, lab::describe(ask_of(o)));
  if (!falls_apart(o, call->desc().outputs.at(0).shape)) o.rows.clear();
  return {};
}

Result<std::vector<Operation>> operations_of(const Choice& choice) {
  const auto files = operation_files();
  for (const auto& op : choice.ops)
    if (std::ranges::find(files, op, &NamedOperationFile::op) == files.end()) {
      std::string known;
      for (const auto& file : files) known += (known.empty() ? "" : ", ") + std::string(file.op);
      return invalid("the lab compares no kernels of '{}'; there are {}", op, known);
    }
  if (!choice.shapes.empty() && choice.ops.size() != 1)
    return invalid("--shapes wants one op, --ops NAME; got {}",
                   choice.ops.empty() ? "all" : fmt::to_string(choice.ops.size()));
  if (!choice.shapes.empty() && choice.sweep)
    return invalid("--shapes and --sweep both say which sizes; give one of them");
  WEFT_TRY(const auto dtypes, dtypes_of(choice.dtypes));
  std::vector<Operation> chosen;
  for (const auto& file : files)
    if (choice.ops.empty() || std::ranges::find(choice.ops, std::string(file.op)) != choice.ops.end())
      WEFT_CHECK(add(choice, dtypes, file, chosen));
  if (chosen.empty())
    return invalid("none of the operations asked for has {}; weft lab list says what there is",
                   choice.sweep ? "a sweep in these dtypes" : "these dtypes");
  return chosen;
}

}  // namespace weft::lab
