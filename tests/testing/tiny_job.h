// A job so small that a step takes milliseconds, as JSON that tests change
// before they write it: a job file may be YAML or JSON.
//
//   nlohmann::json job = TinyJob(sandbox.dir());
//   job["train"]["steps"] = 5;
//   const std::string file = WriteJob(sandbox.dir(), job);
#ifndef LOCKSTEP_TESTS_TESTING_TINY_JOB_H_
#define LOCKSTEP_TESTS_TESTING_TINY_JOB_H_

#include <string>

#include "nlohmann/json.hpp"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace testing {

// Steps of TinyJob and of EndlessJob's checkpoints.
inline constexpr int kTinySteps = 20;

// A byte-level language model; its text is `data/train.txt` of the folder,
// which is written if need be. 20 steps, a checkpoint at 10 and 20, a tenth of
// the text held out. The path is relative to the data root of a Cluster.
nlohmann::json TinyJob(const TempDir& dir);

// The same, but it would train for hours.
nlohmann::json EndlessJob(const TempDir& dir);

// A classifier of rows in `data/train.jsonl`.
nlohmann::json TinyClassifier(const TempDir& dir);

// Writes `job` so that paths relative to the file are those relative to the
// data root: data/NAME.json.
std::string WriteJob(const TempDir& dir, const nlohmann::json& job,
                     const std::string& name = "job");

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_TINY_JOB_H_
