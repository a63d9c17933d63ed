#pragma once
#include "python/src/object.h"
#include "weft/attr.h"

// What the files of the lab share.
namespace weft::python {

/// The value of an attribute: a str, a float, a list of sizes, or an integer.
///
/// Errors   TypeError for anything else.
AttrValue attr_from(nb::handle value);

}  // namespace weft::python
