// PreparedDataFixture: a job spec and a folder of inputs, for tests of caches.
#ifndef LOCKSTEP_TESTS_UNIT_DATA_PREPARED_DATA_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_DATA_PREPARED_DATA_FIXTURE_H_

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/v1/job.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "worker/data/prepared_data.h"

namespace lockstep {
namespace testing {

class PreparedDataFixture : public ::testing::Test {
 protected:
  PreparedDataFixture() {
    options_.data_root = dir_.path();
    options_.cache_dir = dir_.File("cache");
    options_.tokenizer_trainer = TOKENIZER_TRAINER;
    options_.progress = [this](std::string_view phase, double fraction) {
      EXPECT_GE(fraction, 0.0);
      EXPECT_LE(fraction, 1.0);
      if (phases_.empty() || phases_.back() != phase) {
        phases_.emplace_back(phase);
      }
    };
    options_.warn = [this](std::string_view text) {
      warnings_.emplace_back(text);
    };
    spec().set_task(v1::TASK_LANGUAGE_MODEL);
    spec().mutable_train()->set_sequence_length(4);
    spec().mutable_data()->mutable_tokenizer()->set_kind(
        v1::TOKENIZER_KIND_BYTES);
  }

  v1::JobSpec& spec() { return options_.spec; }

  void Train(const std::string& name, std::string_view contents) {
    dir_.Write(name, contents);
    spec().mutable_data()->mutable_train()->add_path(name);
  }
  void Validation(const std::string& name, std::string_view contents) {
    dir_.Write(name, contents);
    spec().mutable_data()->mutable_validation()->add_path(name);
  }
  // Token ids as a file's bytes.
  template <typename Id>
  static std::string Ids(const std::vector<Id>& ids) {
    std::string bytes(ids.size() * sizeof(Id), '\0');
    std::memcpy(bytes.data(), ids.data(), bytes.size());
    return bytes;
  }
  void UseTokens() { spec().mutable_data()->clear_tokenizer(); }

  absl::StatusOr<std::unique_ptr<PreparedData>> Prepare() {
    ASSIGN_OR_RETURN(directory_, PrepareCache(options_));
    return PreparedData::Open(directory_, spec(), options_.data_root);
  }

  // Names in the cache folder.
  std::vector<std::string> Cached() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(options_.cache_dir)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  static MicroBatch Sample(const Dataset& dataset, int64_t sample) {
    MicroBatch batch;
    dataset.Append(sample, sample, batch);
    return batch;
  }

  TempDir dir_;
  DataOptions options_;
  std::string directory_;
  std::vector<std::string> phases_;
  std::vector<std::string> warnings_;
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_UNIT_DATA_PREPARED_DATA_FIXTURE_H_
