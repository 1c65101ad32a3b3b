#include "tests/testing/tiny_job.h"

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace testing {
namespace {

constexpr const char* kSubjects[] = {"the king", "a prophet", "the people",
                                     "every tribe", "no stranger"};
constexpr const char* kVerbs[] = {"went up to", "spoke against", "remembered",
                                  "gathered at"};
constexpr const char* kPlaces[] = {"the river", "the gate of the city",
                                   "the mountain"};

std::string Sentence(int i) {
  return absl::StrCat(kSubjects[i * 7 % 5], " ", kVerbs[i * 5 % 4], " ",
                      kPlaces[i * 11 % 3], " on day ", i % 97, ".");
}

}  // namespace

nlohmann::json TinyJob(const TempDir& dir) {
  std::string text;
  for (int i = 0; i < 600; ++i) absl::StrAppend(&text, Sentence(i), "\n");
  dir.Write("data/train.txt", text);
  return {
      {"name", "tiny"},
      {"model",
       {{"family", "llama"}, {"layers", 2}, {"width", 32}, {"heads", 2}}},
      {"data",
       {{"train", {{"path", "train.txt"}}},
        {"validation", {{"fraction", 0.1}}}}},
      {"train",
       {{"global_batch", 8},
        {"sequence_length", 32},
        {"steps", kTinySteps},
        {"seed", 1},
        {"optimizer", {{"learning_rate", 0.01}}}}},
      {"checkpoint", {{"every_steps", kTinySteps / 2}}},
  };
}

nlohmann::json EndlessJob(const TempDir& dir) {
  nlohmann::json job = TinyJob(dir);
  job["name"] = "endless";
  job["train"]["steps"] = 10'000'000;
  job["checkpoint"]["every_steps"] = 500;
  return job;
}

nlohmann::json TinyClassifier(const TempDir& dir) {
  std::string rows;
  for (int i = 0; i < 200; ++i) {
    const nlohmann::json row = {{"text", Sentence(i)},
                                {"label", i * 5 % 4 == 0 ? "moved" : "other"}};
    absl::StrAppend(&rows, row.dump(), "\n");
  }
  dir.Write("data/train.jsonl", rows);
  nlohmann::json job = TinyJob(dir);
  job["name"] = "classifier";
  job["task"] = "classification";
  job["data"]["train"]["path"] = "train.jsonl";
  job["train"]["sequence_length"] = 64;
  return job;
}

std::string WriteJob(const TempDir& dir, const nlohmann::json& job,
                     const std::string& name) {
  return dir.Write(absl::StrCat("data/", name, ".json"), job.dump(2));
}

}  // namespace testing
}  // namespace lockstep
