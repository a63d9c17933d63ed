#include "cli/lab/lab.h"

#include "lab/kernels/worker.h"

// weft lab: compares kernels of one operation: which is right, which is faster, and how sure that is.
namespace weft::cli {
namespace {

// An option that belongs to another word would be passed over.
void refuse_others(const Syntax& app, const std::string& word) {
  const auto only = [&](const char* option, const std::string& of) {
    if (app.given(option) && word != of)
      throw UsageError(invalid("{} belongs to weft lab {}; weft lab {} does not take it", option,
                               of.empty() ? "KERNEL..." : of, word.empty() ? "KERNEL..." : word));
  };
  for (const char* option : {"--html", "--markdown"}) only(option, "report");
  for (const char* option :
       {"--out", "--program", "--inputs", "--size", "--providers", "--device", "--record"})
    only(option, "");
}

int run(const LabOptions& o, const Syntax& app, const Common& common) {
  if (o.worker) return lab::serve_contender();
  const bool has_word =
      !o.words.empty() && (o.words[0] == "list" || o.words[0] == "report" || o.words[0] == "compare");
  const std::string word = has_word ? o.words[0] : "";
  refuse_others(app, word);
  if (word == "list") {
    if (o.words.size() > 1) throw UsageError(invalid("weft lab list takes nothing else; got {}", o.words[1]));
    return list_kernels(o, common);
  }
  if (word == "report") return report_results(o);
  if (word == "compare") return compare_results(o, common);
  return compare_kernels(o, common);
}

void add_measuring(Syntax& app, lab::ContestOptions& o) {
  app.add_option("--seconds", o.seconds, "of measuring an operation, about")
      .check(positive)
      .capture_default_str();
  app.add_option("--margin", o.margin, "times closer than this share are the SAME")
      .check(positive)
      .capture_default_str();
  app.add_option("--sample", o.sample, "seconds of launches in a turn").check(positive).capture_default_str();
  app.add_option("--timeout", o.process.seconds, "seconds after which a kernel that does not answer hangs")
      .check(positive)
      .capture_default_str();
  app.add_option("--seed", o.seed, "of what is drawn (default: one that no kernel can know)").type_name("N");
  app.add_flag("--cold", o.cold, "flush the caches before each launch; the flush is not counted");
  app.add_flag("--quick", o.quick, "fewer cases of conformance, fewer processes");
}

void add_results(Syntax& app, LabOptions& o) {
  app.add_option("--out", o.out, "add the results to this file, a line of JSON for each operation")
      .check(some_name)
      .type_name("FILE");
  app.add_option("--html", o.html, "report: write a page of the results").check(some_name).type_name("FILE");
  app.add_option("--markdown", o.markdown, "report: write tables; they are printed where nothing is written")
      .check(some_name)
      .type_name("FILE");
}

}  // namespace

extern const Command lab_command = {
    "lab", "compare kernels: are they right, and which is faster?",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<LabOptions>();
      o->contest.seed = 0;  // not given
      app.add_option(
             "contenders", o->words,
             "kernels to compare, the first with each other one (default: every backend); or list, report "
             "FILE..., compare OLD NEW")
          .type_name("KERNEL");
      app.add_option("--ops", o->choice.ops, "operations (default: all)").with_commas().type_name("OP");
      app.add_option("--dtypes", o->choice.dtypes,
                     "element types (default: the first that each operation has)")
          .with_commas()
          .type_name("DTYPE");
      app.add_option("--shapes", o->choice.shapes, "of one operation, as 1024x1024 or 64x512,512x512")
          .type_name("SHAPE");
      app.add_flag("--sweep", o->choice.sweep, "sizes from small to large in place of those of models");
      app.add_option("--program", o->program,
                     "the calls of this program file instead of the lab's operations")
          .check(some_name)
          .type_name("FILE")
          .excludes("--ops")
          .excludes("--dtypes")
          .excludes("--shapes")
          .excludes("--sweep");
      add_input_options(app, o->inputs);
      app.add_option("--providers", o->providers,
                     "of all contenders, those of these providers; see weft lab list")
          .with_commas()
          .type_name("NAME");
      app.add_option("--device", o->device,
                     "where kernels in Python compute (default: where the first kernel does, on a GPU); "
                     "without names, the kernels that run on it are compared")
          .type_name("NAME");
      add_measuring(app, o->contest);
      app.add_flag("--record", o->record,
                   "where another kernel of the first contender's device is FASTER, it is taken from now on");
      app.add_flag("--worker", o->worker, "run one kernel for the lab, which starts such processes itself");
      add_results(app, *o);
      app.footer(
          "Each kernel runs in processes of its own, which take turns; the lab draws operands anew, changes "
          "them before each launch, and checks the results. Exits with 0 where every kernel is FASTER or the "
          "SAME, 3 where one is SLOWER, 4 UNDECIDED, 5 WRONG, 6 INVALID; the worst counts. `weft lab report` "
          "shows files of results. `weft lab compare` tells what became of the ratios to the first kernel "
          "from "
          "one file to another, and exits likewise; with 4 also where nothing matches or something is "
          "missing "
          "in the new file.");
      return [o, &app, &common] { return run(*o, app, common); };
    }};

}  // namespace weft::cli
