#include "coordinator/jobs/job_history.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/log.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr int64_t kIndexEvery = 64;
constexpr size_t kRecentSteps = 50;
// Updates that are kept in memory while the disk takes none.
constexpr size_t kMostUnwritten = 100'000;
constexpr int64_t kWholeFile = std::numeric_limits<int64_t>::max();

template <typename Value>
std::optional<double> Median(const std::deque<RecentStep>& steps, Value value) {
  if (steps.empty()) return std::nullopt;
  std::vector<double> values;
  for (const RecentStep& step : steps) values.push_back(value(step));
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  if (values.size() % 2 == 1) return values[middle];
  const double below =
      *std::max_element(values.begin(), values.begin() + middle);
  return (below + values[middle]) / 2;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobHistory>> JobHistory::Open(std::string folder,
                                                             Options options) {
  auto history =
      std::unique_ptr<JobHistory>(new JobHistory(std::move(folder), options));
  RETURN_IF_ERROR(history->Load());
  return history;
}

JobHistory::JobHistory(std::string folder, Options options)
    : folder_(std::move(folder)), options_(options) {}

JobHistory::~JobHistory() { TryAgain(); }

std::string JobHistory::SegmentPath(int64_t number) const {
  return absl::StrCat(folder_, "/segment-", absl::StrFormat("%06d", number));
}

absl::Status JobHistory::Load() {
  std::vector<int64_t> numbers;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder_, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    return absl::UnavailableError(
        absl::StrCat(folder_, ": can't be read: ", error.message()));
  }
  while (!error && entries != std::filesystem::directory_iterator()) {
    const std::string name = entries->path().filename().string();
    int64_t number = 0;
    absl::string_view digits = name;
    if (absl::ConsumePrefix(&digits, "segment-") &&
        absl::SimpleAtoi(digits, &number) && number > 0) {
      numbers.push_back(number);
    }
    entries.increment(error);
  }
  std::sort(numbers.begin(), numbers.end());
  absl::MutexLock lock(&mutex_);
  for (const int64_t number : numbers) {
    const std::string path = SegmentPath(number);
    auto end = ReadHistoryFile(
        path, 0, kWholeFile,
        [&](HistoryRecord record,
            int64_t offset) ABSL_NO_THREAD_SAFETY_ANALYSIS {
          last_sequence_ = std::max(last_sequence_, record.update.sequence());
          AddIndexEntry(record.update.sequence(), number, offset);
          NoteInSummary(record);
          return true;
        });
    if (end.status().code() == absl::StatusCode::kDataLoss) {
      LOG(WARNING) << end.status().message() << "; it is begun anew";
      end = 0;
    }
    if (!end.ok()) return end.status();
    const auto size = std::filesystem::file_size(path, error);
    if (!error && static_cast<int64_t>(size) > *end) {
      LOG(WARNING) << path << ": " << size - static_cast<uint64_t>(*end)
                   << " bytes of a torn or damaged tail are dropped";
    }
    segments_.push_back({number, *end});
  }
  ASSIGN_OR_RETURN(tokens_, TokensBelow(TakeSnapshot(0), kWholeFile));
  return absl::OkStatus();
}

void JobHistory::AddIndexEntry(int64_t sequence, int64_t segment,
                               int64_t offset) {
  const bool first = index_.empty() || index_.back().segment != segment;
  if (first || ++records_since_index_ >= kIndexEvery) {
    index_.push_back({sequence, segment, offset});
    records_since_index_ = 0;
  }
}

void JobHistory::NoteInSummary(const HistoryRecord& record) {
  switch (record.update.update_case()) {
    case v1::JobUpdate::kStep: {
      const v1::StepReport& step = record.update.step();
      if (last_step_generation_ != record.generation) recent_.clear();
      last_step_ = step;
      last_step_generation_ = record.generation;
      tokens_ += step.tokens();
      if (step.seconds() > 0)
        recent_.push_back({step.tokens(), step.seconds()});
      if (recent_.size() > kRecentSteps) recent_.pop_front();
      break;
    }
    case v1::JobUpdate::kEvaluation:
      last_evaluation_ = record.update.evaluation();
      last_evaluation_generation_ = record.generation;
      break;
    case v1::JobUpdate::kOutput:
      if (record.generation != generation_) last_output_sequence_ = 0;
      last_output_sequence_ =
          std::max(last_output_sequence_, record.message_sequence);
      if (record.update.output().has_evaluation()) {
        last_evaluation_ = record.update.output().evaluation();
        last_evaluation_generation_ = record.generation;
      }
      break;
    case v1::JobUpdate::kJob:
    case v1::JobUpdate::kProgress:
    case v1::JobUpdate::kEvent:
    case v1::JobUpdate::kLayout:
    case v1::JobUpdate::UPDATE_NOT_SET:
      break;
  }
  generation_ = std::max(generation_, record.generation);
}

int64_t JobHistory::Append(int64_t generation, v1::JobUpdate update) {
  absl::MutexLock lock(&mutex_);
  return AppendRecord({generation, 0, std::move(update)});
}

bool JobHistory::AppendStep(int64_t generation, const v1::StepReport& step) {
  absl::MutexLock lock(&mutex_);
  if (generation < generation_) return false;
  if (last_step_.has_value()) {
    if (generation == last_step_generation_) {
      if (step.step() <= last_step_->step()) return false;
    } else {
      // Went back to a checkpoint: its steps replace the older ones.
      const auto below = TokensBelow(TakeSnapshot(0), step.step());
      if (below.ok()) tokens_ = *below;
    }
  }
  v1::JobUpdate update;
  *update.mutable_step() = step;
  AppendRecord({generation, 0, std::move(update)});
  return true;
}

bool JobHistory::AppendEvaluation(int64_t generation,
                                  const v1::EvaluationReport& evaluation) {
  absl::MutexLock lock(&mutex_);
  if (generation < generation_) return false;
  if (last_evaluation_.has_value() &&
      generation == last_evaluation_generation_ &&
      evaluation.step() <= last_evaluation_->step()) {
    return false;
  }
  v1::JobUpdate update;
  *update.mutable_evaluation() = evaluation;
  AppendRecord({generation, 0, std::move(update)});
  return true;
}

bool JobHistory::AppendOutput(int64_t generation, int64_t message_sequence,
                              v1::ActionOutput output) {
  absl::MutexLock lock(&mutex_);
  if (generation < generation_) return false;
  if (generation == generation_ && message_sequence > 0 &&
      message_sequence <= last_output_sequence_) {
    return false;
  }
  v1::JobUpdate update;
  *update.mutable_output() = std::move(output);
  AppendRecord({generation, message_sequence, std::move(update)});
  return true;
}

int64_t JobHistory::AppendRecord(HistoryRecord record) {
  const int64_t sequence = ++last_sequence_;
  record.update.set_sequence(sequence);
  NoteInSummary(record);
  std::string frame = EncodeHistoryRecord(record);
  WriteKept();
  absl::Status status =
      unwritten_.empty() ? WriteFrame(sequence, frame) : absl::OkStatus();
  if (!status.ok()) {
    LOG(ERROR) << "job history: " << status.message()
               << "; kept in memory until it works";
  }
  if (!status.ok() || !unwritten_.empty()) {
    unwritten_.push_back({sequence, std::move(record), std::move(frame)});
    if (unwritten_.size() > kMostUnwritten) unwritten_.pop_front();
  }
  return sequence;
}

void JobHistory::WriteKept() {
  while (!unwritten_.empty()) {
    const Unwritten& first = unwritten_.front();
    if (!WriteFrame(first.sequence, first.frame).ok()) return;
    unwritten_.pop_front();
  }
}

absl::Status JobHistory::WriteFrame(int64_t sequence,
                                    const std::string& frame) {
  if (!appender_.has_value() || appender_->bytes() >= options_.segment_bytes) {
    RETURN_IF_ERROR(OpenSegment());
  }
  const int64_t offset = appender_->bytes();
  RETURN_IF_ERROR(appender_->Append(frame));
  segments_.back().bytes = appender_->bytes();
  AddIndexEntry(sequence, segments_.back().number, offset);
  return absl::OkStatus();
}

absl::Status JobHistory::OpenSegment() {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat(folder_, ": can't be made: ", error.message()));
  }
  Segment segment;
  const bool full =
      !segments_.empty() && segments_.back().bytes >= options_.segment_bytes;
  if (!segments_.empty() && !full) {
    segment = segments_.back();
  } else {
    segment.number = segments_.empty() ? 1 : segments_.back().number + 1;
  }
  ASSIGN_OR_RETURN(
      HistoryAppender appender,
      HistoryAppender::Open(SegmentPath(segment.number), segment.bytes));
  if (segment.bytes == 0) {
    RETURN_IF_ERROR(appender.Append(HistoryFileHeader()));
    segment.bytes = appender.bytes();
  }
  appender_ = std::move(appender);
  if (segments_.empty() || segments_.back().number != segment.number) {
    segments_.push_back(segment);
  } else {
    segments_.back() = segment;
  }
  while (segments_.size() > static_cast<size_t>(options_.segments)) {
    const int64_t oldest = segments_.front().number;
    std::filesystem::remove(SegmentPath(oldest), error);
    segments_.erase(segments_.begin());
    std::erase_if(index_, [oldest](const IndexEntry& entry) {
      return entry.segment == oldest;
    });
  }
  return absl::OkStatus();
}

void JobHistory::SetProgress(const v1::Progress& progress) {
  absl::MutexLock lock(&mutex_);
  progress_.progress = progress;
  ++progress_.version;
}

void JobHistory::TryAgain() {
  absl::MutexLock lock(&mutex_);
  if (!closed_) WriteKept();
}

void JobHistory::Settle() {
  absl::MutexLock lock(&mutex_);
  WriteKept();
  appender_.reset();
}

void JobHistory::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  appender_.reset();
}

JobHistory::Snapshot JobHistory::TakeSnapshot(int64_t after_sequence) const {
  Snapshot snapshot;
  // The last entry at or before the first wanted record.
  const IndexEntry* start = nullptr;
  for (const IndexEntry& entry : index_) {
    if (entry.sequence > after_sequence + 1) break;
    start = &entry;
  }
  for (const Segment& segment : segments_) {
    if (start != nullptr && segment.number < start->segment) continue;
    snapshot.segments.push_back(segment);
  }
  if (start != nullptr) snapshot.offset = start->offset;
  for (const Unwritten& unwritten : unwritten_) {
    if (unwritten.sequence > after_sequence) {
      snapshot.unwritten.push_back(unwritten.record);
    }
  }
  return snapshot;
}

absl::Status JobHistory::Scan(
    const Snapshot& snapshot,
    const std::function<bool(const HistoryRecord&)>& take) const {
  bool wanted = true;
  for (size_t i = 0; i < snapshot.segments.size() && wanted; ++i) {
    const auto end = ReadHistoryFile(
        SegmentPath(snapshot.segments[i].number), i == 0 ? snapshot.offset : 0,
        snapshot.segments[i].bytes, [&](HistoryRecord record, int64_t) {
          wanted = take(record);
          return wanted;
        });
    // Dropped for size, or deleted with the job, meanwhile.
    if (!end.ok() && end.status().code() != absl::StatusCode::kNotFound) {
      return end.status();
    }
  }
  for (size_t i = 0; i < snapshot.unwritten.size() && wanted; ++i) {
    wanted = take(snapshot.unwritten[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::JobUpdate>> JobHistory::Read(
    int64_t after_sequence, int limit) const {
  Snapshot snapshot;
  {
    absl::MutexLock lock(&mutex_);
    if (after_sequence >= last_sequence_) return std::vector<v1::JobUpdate>();
    snapshot = TakeSnapshot(after_sequence);
  }
  std::vector<v1::JobUpdate> updates;
  RETURN_IF_ERROR(Scan(snapshot, [&](const HistoryRecord& record) {
    if (record.update.sequence() > after_sequence) {
      updates.push_back(record.update);
    }
    return static_cast<int>(updates.size()) < limit;
  }));
  return updates;
}

absl::StatusOr<std::vector<v1::StepReport>> JobHistory::Steps(
    int64_t after_step) const {
  Snapshot snapshot;
  {
    absl::MutexLock lock(&mutex_);
    snapshot = TakeSnapshot(0);
  }
  // Generations only rise, so the last record of a step is its newest.
  std::map<int64_t, v1::StepReport> steps;
  RETURN_IF_ERROR(Scan(snapshot, [&](const HistoryRecord& record) {
    if (record.update.has_step() && record.update.step().step() > after_step) {
      steps[record.update.step().step()] = record.update.step();
    }
    return true;
  }));
  std::vector<v1::StepReport> sorted;
  sorted.reserve(steps.size());
  for (auto& [step, report] : steps) sorted.push_back(std::move(report));
  return sorted;
}

absl::StatusOr<int64_t> JobHistory::TokensBelow(const Snapshot& snapshot,
                                                int64_t step) const {
  std::map<int64_t, int64_t> tokens;
  RETURN_IF_ERROR(Scan(snapshot, [&](const HistoryRecord& record) {
    const v1::StepReport& report = record.update.step();
    if (record.update.has_step() && report.step() < step) {
      tokens[report.step()] = report.tokens();
    }
    return true;
  }));
  int64_t sum = 0;
  for (const auto& [at, count] : tokens) sum += count;
  return sum;
}

JobHistory::Progress JobHistory::progress() const {
  absl::MutexLock lock(&mutex_);
  return progress_;
}

int64_t JobHistory::last_sequence() const {
  absl::MutexLock lock(&mutex_);
  return last_sequence_;
}

bool JobHistory::closed() const {
  absl::MutexLock lock(&mutex_);
  return closed_;
}

HistorySummary JobHistory::summary() const {
  absl::MutexLock lock(&mutex_);
  HistorySummary summary;
  summary.generation = last_step_generation_;
  summary.last_step = last_step_;
  summary.last_evaluation = last_evaluation_;
  summary.tokens = tokens_;
  summary.step_seconds =
      Median(recent_, [](const RecentStep& step) { return step.seconds; });
  summary.tokens_per_second = Median(recent_, [](const RecentStep& step) {
    return static_cast<double>(step.tokens) / step.seconds;
  });
  return summary;
}

bool JobHistory::WaitForMore(int64_t after_sequence, int64_t after_progress,
                             absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  const auto more = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return closed_ || last_sequence_ > after_sequence ||
           progress_.version > after_progress;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&more), timeout);
}

}  // namespace lockstep
