#include "base/shown.h"

#include <gtest/gtest.h>

// Texts of files in messages.
namespace weft::shown_test {
namespace {

TEST(Shown, CutsLongTextsBetweenCharacters) {
  EXPECT_EQ(shown(std::string(120, 'a')), std::string(120, 'a'));
  EXPECT_EQ(shown(std::string(121, 'a')), std::string(117, 'a') + "...");
  EXPECT_EQ(shown("abcdefghij", 6), "abc...");
  EXPECT_EQ(shown("a\u00e9\u00e9\u00e9\u00e9", 7), "a\u00e9...");  // not between two bytes of one
}

}  // namespace
}  // namespace weft::shown_test
