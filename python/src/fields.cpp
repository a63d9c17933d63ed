#include "python/src/fields.h"

#include "eager/tensor_impl.h"

namespace weft::python {

void set_field(Tensor& field, const Tensor& value, bool trained, const std::string& what) {
  if (!field)
    throw Error(
        invalid("{} has no elements that a tensor could stand for: build() the module first, where it "
                "has this field",
                what));
  if (!(value.type() == field.type()))
    throw Error(invalid("{} is {}, got {}; cast() and reshape() make a tensor alike", what,
                        text(field.type()), text(value.type())));
  const bool leaf = !(value.impl()->extra && value.impl()->extra->node);
  if (value.requires_grad() && !(leaf && trained))
    throw Error(invalid("{} takes a tensor without history, got one that {}; detach() gives its elements",
                        what, leaf ? "requires a gradient" : "a gradient goes back through"));
  const Tensor before = field;
  if (value.requires_grad() || !trained) {
    field = value;
    return field_left(before);
  }
  Tensor own = value.detach();
  own.named(field.name());
  own.requires_grad(field.requires_grad());
  field = own;
  field_left(before);
}

}  // namespace weft::python
