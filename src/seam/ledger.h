#pragma once
#include <map>
#include <mutex>
#include <tuple>

#include "seam/prepared_kernel.h"
#include "weft/ledger.h"

namespace weft::seam {

/// What ran. A prepared kernel counts its own launches; rows of destroyed ones are kept.
class Ledger {
 public:
  void enter(PreparedKernel& plan);
  void leave(PreparedKernel& plan);
  /// Notes that a device was chosen from a list of backends, and that others were skipped.
  void chosen(const std::string& device, const std::string& passed_over);
  void copied(const std::string& from, const std::string& to, uint64_t bytes);
  std::vector<LedgerRow> rows() const;
  /// Forgets the counts so far.
  void clear();

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;  // device, op, kernel, why
  mutable std::mutex mutex_;
  PreparedKernel* live_ = nullptr;  // an intrusive list: entering and leaving is part of a cache miss
  std::map<Key, LedgerRow> ended_;
  std::map<std::pair<std::string, std::string>, LedgerRow> chosen_, copies_;
};

Ledger& ledger();

}  // namespace weft::seam
