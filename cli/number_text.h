// Numbers for people.
#ifndef LOCKSTEP_CLI_NUMBER_TEXT_H_
#define LOCKSTEP_CLI_NUMBER_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"

namespace lockstep {

// "7", "12.3k", "4.56M": three significant digits.
std::string ShortCount(double count);
// "12,345".
std::string GroupedCount(int64_t count);
// Four digits after the point.
std::string LossText(double loss);
// "0s", "42s", "1m02s", "3h07m", "2d04h".
std::string ShortDuration(absl::Duration duration);

absl::Time ToTime(const google::protobuf::Timestamp& stamp);
// "3m12s" since `stamp`; "-" if there is none.
std::string Age(const google::protobuf::Timestamp& stamp, absl::Time now);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_NUMBER_TEXT_H_
