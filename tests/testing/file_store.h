// FileStore: the rendezvous store of ranks that are processes of one test; a
// key is a file in a folder they share.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_TESTS_TESTING_FILE_STORE_H_
#define LOCKSTEP_TESTS_TESTING_FILE_STORE_H_

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "worker/dist/store.h"

namespace lockstep {
namespace testing {

class FileStore : public Store {
 public:
  explicit FileStore(std::string folder) : folder_(std::move(folder)) {}

  absl::Status Set(const std::string& key, const std::string& value) override {
    const std::string path = PathOf(key);
    const std::string written = absl::StrCat(path, ".", getpid());
    {
      std::ofstream stream(written, std::ios::binary);
      stream << value;
      if (!stream.good()) {
        return absl::UnavailableError(absl::StrCat("writing ", written));
      }
    }
    std::error_code error;
    std::filesystem::rename(written, path, error);
    if (error) return absl::UnavailableError(error.message());
    return absl::OkStatus();
  }

  // Looks again and again: files tell nobody that they are there.
  absl::StatusOr<std::vector<std::string>> Get(
      const std::vector<std::string>& keys, absl::Duration timeout) override {
    const absl::Time deadline = absl::Now() + timeout;
    std::vector<std::string> values;
    for (const std::string& key : keys) {
      while (!std::filesystem::exists(PathOf(key))) {
        if (absl::Now() > deadline) {
          return absl::DeadlineExceededError(
              absl::StrCat("key ", key, " is missing"));
        }
        absl::SleepFor(absl::Milliseconds(1));
      }
      std::ifstream stream(PathOf(key), std::ios::binary);
      std::ostringstream value;
      value << stream.rdbuf();
      values.push_back(value.str());
    }
    return values;
  }

 private:
  std::string PathOf(const std::string& key) const {
    return absl::StrCat(folder_, "/key-",
                        absl::StrReplaceAll(key, {{"/", "_"}}));
  }

  const std::string folder_;
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_FILE_STORE_H_
