#include "conformance/cases.h"

namespace weft::conformance {

static Case on(const char* equation, std::vector<Input> inputs, const char* why) {
  return {.inputs = std::move(inputs), .attrs = {{"equation", std::string(equation)}}, .why = why};
}

OpCases einsum_cases() {
  OpCases cases = {
      on("ij,jk->ik", {normal({3, 4}), normal({4, 5})}, "a matrix product"),
      on("bij,bkj->bki", {normal({2, 3, 4}), normal({2, 5, 4})}, "transposed, and so is the result"),
      on("ij,jk", {normal({3, 4}), normal({4, 2})}, "implicit result"),
      on("b...i,i...", {normal({2, 3, 4}), normal({4, 1})}, "implicit result, \"...\" broadcasts"),
      on("...ij,...jk->...ik", {normal({2, 1, 2, 3}), normal({4, 3, 2})}, "\"...\" of two lengths"),
      on("ii->i", {normal({4, 4})}, "a diagonal"),
      on("ijij->", {normal({2, 3, 2, 3})}, "a trace"),
      on("iij,jk->ki", {normal({3, 3, 2}), normal({2, 4})}, "a diagonal in a product"),
      on("i,j->ji", {normal({3}), normal({4})}, "an outer product"),
      on("i,i", {normal({5}), normal({5})}, "a dot product"),
      on("ij,k->i", {normal({3, 4}), normal({2})}, "letters that one operand alone has"),
      on(",i->i", {normal({}), normal({3})}, "a number"),
      on("abi,jba->ij", {normal({2, 3, 4}), normal({5, 3, 2})}, "inner axes in two orders"),
      on("ab,cd->acbd", {normal({2, 3}), normal({4, 2})}, "an outer product with its axes mixed"),
      on("ij->ji", {normal({3, 4})}, "a transposition"),
      on("ab,bc,cd->ad", {normal({2, 3}), normal({3, 4}), normal({4, 2})}, "a chain"),
      on("ijk,il,jm,kn->lmn", {normal({2, 3, 2}), normal({2, 2}), normal({3, 2}), normal({2, 3})},
         "four operands"),
      on("a,b,a...,b->...", {normal({2}), normal({3}), normal({2, 2}), normal({3})}, "a path with parts"),
      on("ij,jk->ik", {normal({3, 0}), normal({0, 2})}, "no terms: zeros"),
      on("bi,bi->b", {normal({0, 3}), normal({0, 3})}, "nothing"),
      on("ij,jk,k->i", {integers({3, 4}, -9, 9), integers({4, 2}, -3, 3), integers({2}, -3, 3)},
         "small integers: exact"),
  };
  cases.push_back(on("a,b,c,d,e,f,ga,h->g",
                     {normal({2}), normal({2}), normal({2}), normal({1}), normal({2}), normal({3}),
                      normal({2, 2}), normal({1})},
                     "eight operands"));
  cases.push_back(on(
      "abcdefjk,abcghilm,defghino->jklmno",
      {normal({2, 1, 2, 2, 1, 2, 2, 1}), normal({2, 1, 2, 2, 1, 2, 1, 2}), normal({2, 1, 2, 2, 1, 2, 2, 1})},
      "in any order a value with more labels than a tensor has axes"));
  cases.push_back(on("abcdefjk,abcghilm,defghino->jklmno",
                     {integers({2, 1, 2, 2, 1, 2, 2, 1}, -2, 2), integers({2, 1, 2, 2, 1, 2, 1, 2}, -2, 2),
                      integers({2, 1, 2, 2, 1, 2, 2, 1}, -2, 2)},
                     "the same in integers: exact"));
  cases.push_back(on("abcdex,xfghij,cdefghz,abzw->ijw",
                     {normal({1, 2, 1, 1, 2, 2}), normal({2, 1, 1, 1, 1, 1}), normal({1, 1, 2, 1, 1, 1, 3}),
                      normal({1, 2, 3, 4})},
                     "a value with many labels, then one with few"));
  cases.push_back(on("ij,jk->ik", {values({1, kInf, kNan, 0}, {2, 2}), values({1, 0, 2, 1}, {2, 2})},
                     "infinity times zero is NaN, and stays in its row"));
  cases.back().no_gradient = "infinite";
  return cases;
}

}  // namespace weft::conformance
