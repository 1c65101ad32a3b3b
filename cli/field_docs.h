// FieldDocs: the documentation of the job file's keys, from the comments of its
// proto.
#ifndef LOCKSTEP_CLI_FIELD_DOCS_H_
#define LOCKSTEP_CLI_FIELD_DOCS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace lockstep {

class FieldDocs {
 public:
  // From EmbeddedProtoset().
  FieldDocs();

  // What there is to know of the key at `path` ("train.optimizer", or
  // "jobspec.train.optimizer"; "jobspec" alone is the whole file): its type,
  // text, default, words or keys.
  //   NOT_FOUND names the nearest key.
  absl::StatusOr<std::string> Explain(const std::string& path) const;

 private:
  google::protobuf::DescriptorPool pool_;
  const google::protobuf::Descriptor* root_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_FIELD_DOCS_H_
