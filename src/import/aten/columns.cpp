#include "import/places.h"

// Windows of images as columns, and columns added up to images.
namespace weft::importer {
namespace {

struct Windows {
  int64_t kernel[2], dilation[2], padding[2], stride[2], image[2], padded[2], steps[2];
};
// Of an image of this size.
bool windows_of(Call& c, Dim height, Dim width, Windows& w) {
  const auto pair = [&](const char* name, int64_t* to) {
    const IntList given = c.integers(name, 2);
    to[0] = given[0], to[1] = given[1];
  };
  pair("kernel_size", w.kernel), pair("dilation", w.dilation), pair("padding", w.padding),
      pair("stride", w.stride);
  if (!height.is_const() || !width.is_const())
    return c.refuse(fail(Code::unsupported, "an image whose size is a symbol")), false;
  w.image[0] = height.value(), w.image[1] = width.value();
  for (int i = 0; i < 2; ++i) {
    constexpr int64_t kMost = 1 << 20;
    for (const int64_t* n : {w.kernel, w.dilation, w.stride})
      if (n[i] < 1 || n[i] > kMost)
        return c.refuse(invalid("a window with a size or step of {}", n[i])), false;
    if (w.padding[i] < 0 || w.padding[i] > kMost || w.image[i] > kMost)
      return c.refuse(invalid("an image of {} with a padding of {}", w.image[i], w.padding[i])), false;
    w.padded[i] = w.image[i] + 2 * w.padding[i];
    w.steps[i] = (w.padded[i] - w.dilation[i] * (w.kernel[i] - 1) - 1) / w.stride[i] + 1;
  }
  return true;
}
// Where element (row, column) of each window is in the padded image, row-major.
ir::Value elements_of(Call& c, const Windows& w) {
  const auto along = [&](int axis, int64_t n, int64_t times) {
    Shape shape{1, 1, 1, 1};
    shape[static_cast<size_t>(axis)] = n;
    return c.b.reshape(c.b.mul(count(c.b, n), number(c.b, times)), shape);
  };
  const auto row = c.b.add(along(0, w.kernel[0], w.dilation[0] * w.padded[1]),
                           along(2, w.steps[0], w.stride[0] * w.padded[1]));
  const auto column = c.b.add(along(1, w.kernel[1], w.dilation[1]), along(3, w.steps[1], w.stride[1]));
  return c.b.reshape(c.b.add(row, column), {w.kernel[0] * w.kernel[1] * w.steps[0] * w.steps[1]});
}
ir::Value padded(Call& c, ir::Value x, const Windows& w) {
  for (int64_t i = 0; i < 2; ++i)
    x = c.b.one(
        "pad", {x},
        {{"axis", x.rank() - 2 + i}, {"before", Shape{w.padding[i]}}, {"after", Shape{w.padding[i]}}});
  return x;
}

void im2col(Call& c) {
  const auto x = c.tensor("self");
  if (x.rank() != 3 && x.rank() != 4) return c.refuse(invalid("images of {}", weft::text(x.type())));
  const Shape& shape = x.shape();
  Windows w;
  if (!windows_of(c, shape[shape.size() - 2], shape.back(), w)) return;
  Shape rows(shape.begin(), shape.end() - 2);
  rows.push_back(w.padded[0] * w.padded[1]);
  const auto y = gather(c.b, c.b.reshape(padded(c, x, w), rows), elements_of(c, w), x.rank() - 2);
  c.give(c.b.reshape(y, c.declared().shape));
}
void col2im(Call& c) {
  const auto x = c.tensor("self");
  const IntList size = c.integers("output_size", 2);
  if (x.rank() != 2 && x.rank() != 3) return c.refuse(invalid("columns of {}", weft::text(x.type())));
  Windows w;
  if (!windows_of(c, size[0], size[1], w)) return;
  Shape images = c.declared().shape, columns = images;
  if (images.size() != x.shape().size() + 1) return c.refuse(invalid("its result must have one axis more"));
  images.pop_back(), columns.pop_back();
  images.back() = w.padded[0] * w.padded[1];
  columns.back() = w.kernel[0] * w.kernel[1] * w.steps[0] * w.steps[1];
  const auto sum =
      c.b.one("scatter_add", {c.b.full(0, images, x.dtype()), elements_of(c, w), c.b.reshape(x, columns)},
              {{"axis", static_cast<int64_t>(images.size()) - 1}});
  images.back() = w.padded[0], images.push_back(w.padded[1]);
  auto y = c.b.reshape(sum, images);
  for (int64_t i = 0; i < 2; ++i)
    y = c.b.one("slice", {y},
                {{"axis", y.rank() - 2 + i},
                 {"start", Shape{w.padding[i]}},
                 {"stop", Shape{w.padding[i] + w.image[i]}}});
  c.give(y);
}

constexpr AtenOp columns_ops[] = {
    {"col2im.default", "self, output_size=, kernel_size=, dilation=, padding=, stride=", "scatter_add",
     col2im},
    {"im2col.default", "self, kernel_size=, dilation=, padding=, stride=", "pad, gather", im2col},
};

}  // namespace

extern constinit const Family columns_family = {columns_ops};

}  // namespace weft::importer
