#pragma once
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/program/inputs.h"
#include "lab/kernels/contest.h"

// weft lab: what it compares, and what becomes of its results.
namespace weft::cli {

struct LabOptions {
  std::vector<std::string> words;  ///< contenders; or list, report, compare and what belongs to it
  lab::Choice choice;
  std::vector<std::string> providers;
  std::string program;  ///< whose calls are compared
  ProgramInputs inputs;
  std::string device, out, html, markdown;
  lab::ContestOptions contest;
  bool worker = false, record = false;
};

/// Each of these runs what its word says and returns the exit status.
int list_kernels(const LabOptions& o, const Common& common);
int compare_kernels(const LabOptions& o, const Common& common);
/// Files of results as a page, as Markdown, or both.
int report_results(const LabOptions& o);
/// What has changed from one file of results to another.
int compare_results(const LabOptions& o, const Common& common);

/// Contenders that can be had here: the default backend's choice first, then every other, as far as
/// `providers` and `device` name them.
///
/// Errors   invalid_argument for a provider or a device that is not there, with those that are.
std::vector<std::string> contenders_here(const std::vector<std::string>& providers,
                                         const std::string& device);

/// The device, and those that serve it. Errors: invalid_argument where it is not there, with those that are.
std::vector<std::string> contenders_on(const std::string& device);

/// The commit of the checkout that this program was built from; "unknown" where that was none.
const char* commit_of_build();

}  // namespace weft::cli
