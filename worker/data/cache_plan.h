// CachePlan: what a job's token cache is to be made of, found without reading
// the data: the input files, and a key that changes when they or the settings
// that matter do.
#ifndef LOCKSTEP_WORKER_DATA_CACHE_PLAN_H_
#define LOCKSTEP_WORKER_DATA_CACHE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lockstep/v1/job.pb.h"
#include "worker/data/cache_manifest.h"
#include "worker/data/data_root.h"
#include "worker/data/document_reader.h"
#include "worker/data/input_files.h"
#include "worker/data/prepared_data.h"
#include "worker/data/token_stream.h"

namespace lockstep {

// The files of one data source and what of a row is read.
struct SourcePlan {
  Inputs inputs;
  DocumentFields fields;
};

struct CachePlan {
  explicit CachePlan(DataRoot data_root) : root(std::move(data_root)) {}

  DataRoot root;
  CacheManifest::Layout layout = CacheManifest::Layout::kLanguageModel;
  SourcePlan train;
  // Of its own path; else see `fraction`.
  std::optional<SourcePlan> validation;
  std::optional<double> fraction;
  // A given SentencePiece model: its contents and its path for messages.
  std::optional<std::string> model;
  std::string model_path;
  std::string key;
};

absl::StatusOr<CachePlan> PlanCache(const DataOptions& options);

absl::StatusOr<SourcePlan> PlanSource(const DataRoot& root,
                                      const v1::DataSource& source,
                                      std::string_view key, v1::Task task);

// One line a file: path, size and time. Part of keys.
std::string DescribeInputs(const SourcePlan& source);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CACHE_PLAN_H_
