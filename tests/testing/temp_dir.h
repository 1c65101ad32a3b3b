// TempDir: a fresh folder that is removed, with all in it, when it goes.
#ifndef LOCKSTEP_TESTS_TESTING_TEMP_DIR_H_
#define LOCKSTEP_TESTS_TESTING_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "common/log.h"

namespace lockstep {
namespace testing {

class TempDir {
 public:
  TempDir() {
    std::string path =
        std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX";
    CHECK(mkdtemp(path.data()) != nullptr) << path;
    path_ = path;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // path()/name.
  std::string File(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }
  // Writes path()/name and returns its path; makes folders on the way.
  std::string Write(std::string_view name, std::string_view contents) const {
    const std::string file = File(name);
    std::filesystem::create_directories(
        std::filesystem::path(file).parent_path());
    std::ofstream stream(file, std::ios::binary);
    stream << contents;
    CHECK(stream.good()) << "writing " << file;
    return file;
  }
  // Contents of path()/name.
  std::string Read(std::string_view name) const {
    std::ifstream stream(File(name), std::ios::binary);
    CHECK(stream.good()) << "reading " << File(name);
    std::ostringstream contents;
    contents << stream.rdbuf();
    return contents.str();
  }

 private:
  std::string path_;
};

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_TEMP_DIR_H_
