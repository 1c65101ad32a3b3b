// Times as protos carry them.
#ifndef LOCKSTEP_COMMON_TIMESTAMP_H_
#define LOCKSTEP_COMMON_TIMESTAMP_H_

#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"
#include "google/protobuf/util/time_util.h"

namespace lockstep {

// To the microsecond.
inline google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  return google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(
      absl::ToUnixMicros(time));
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TIMESTAMP_H_
