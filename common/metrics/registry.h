// MetricsRegistry: the process's metrics, and their text for Prometheus.
//
//   metrics.Increment(metric_names::kWorkerRanksExited, {{"cause", "hang"}});
//   metrics.Set(metric_names::kJobStep, {{"job", id}}, 12);
//   metrics.RemoveSeries("job", id);   // when the job is of no interest more
//
// A series appears at its first use; Increment by 0 makes it appear at zero.
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_COMMON_METRICS_REGISTRY_H_
#define LOCKSTEP_COMMON_METRICS_REGISTRY_H_

#include <map>
#include <memory>
#include <string>

#include "common/metrics/metric_names.h"

namespace lockstep {

using MetricLabels = std::map<std::string, std::string>;

class MetricsRegistry {
 public:
  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  void Increment(const CounterName& metric, const MetricLabels& labels,
                 double by = 1.0);
  void Set(const GaugeName& metric, const MetricLabels& labels, double value);
  void Observe(const HistogramName& metric, const MetricLabels& labels,
               double value);

  // Drops every series that has `label` at `value`.
  void RemoveSeries(const std::string& label, const std::string& value);

  // All series in the text exposition format, version 0.0.4.
  std::string Text() const;

 private:
  struct Families;
  const std::unique_ptr<Families> families_;  // self-synchronised
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_METRICS_REGISTRY_H_
