#include "fuzz/folder.h"
#include "fuzz/target.h"
#include "weft/pretrained.h"

// The text of a model's config.json. There are no weights beside it, so that it is read, the model is made,
// and then that is said.
void weft::fuzz::target(std::string_view input) {
  static const Folder folder;
  folder.write("config.json", input);
  expect(refused_by([] { (void)nn::load_pretrained(folder.path(), DType::f32); }), "weights are missed");
}
