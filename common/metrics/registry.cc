#include "common/metrics/registry.h"

#include <utility>

#include "absl/synchronization/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

namespace lockstep {
namespace {

// One kind's families by name, with their series by labels: the library has no
// way to list a family's series, which RemoveSeries needs. The library throws
// on malformed names only, and all names are constants of metric_names.h.
template <typename Metric>
struct Kind {
  struct Entry {
    prometheus::Family<Metric>* family = nullptr;
    std::map<MetricLabels, Metric*> series;
  };
  std::map<std::string, Entry> entries;

  template <typename Builder, typename... Args>
  Metric& Find(prometheus::Registry& registry, Builder builder,
               const char* name, const char* help, const MetricLabels& labels,
               Args&&... args) {
    Entry& entry = entries[name];
    if (entry.family == nullptr) {
      entry.family = &builder.Name(name).Help(help).Register(registry);
    }
    Metric*& metric = entry.series[labels];
    if (metric == nullptr) {
      metric = &entry.family->Add(prometheus::Labels(labels),
                                  std::forward<Args>(args)...);
    }
    return *metric;
  }

  void Remove(const std::string& label, const std::string& value) {
    for (auto& [name, entry] : entries) {
      for (auto it = entry.series.begin(); it != entry.series.end();) {
        const auto found = it->first.find(label);
        if (found != it->first.end() && found->second == value) {
          entry.family->Remove(it->second);
          it = entry.series.erase(it);
        } else {
          ++it;
        }
      }
    }
  }
};

}  // namespace

struct MetricsRegistry::Families {
  mutable absl::Mutex mutex;
  prometheus::Registry registry;
  Kind<prometheus::Counter> counters ABSL_GUARDED_BY(mutex);
  Kind<prometheus::Gauge> gauges ABSL_GUARDED_BY(mutex);
  Kind<prometheus::Histogram> histograms ABSL_GUARDED_BY(mutex);
};

MetricsRegistry::MetricsRegistry() : families_(std::make_unique<Families>()) {}
MetricsRegistry::~MetricsRegistry() = default;

void MetricsRegistry::Increment(const CounterName& metric,
                                const MetricLabels& labels, double by) {
  absl::MutexLock lock(&families_->mutex);
  families_->counters
      .Find(families_->registry, prometheus::BuildCounter(), metric.name,
            metric.help, labels)
      .Increment(by);
}

void MetricsRegistry::Set(const GaugeName& metric, const MetricLabels& labels,
                          double value) {
  absl::MutexLock lock(&families_->mutex);
  families_->gauges
      .Find(families_->registry, prometheus::BuildGauge(), metric.name,
            metric.help, labels)
      .Set(value);
}

void MetricsRegistry::Observe(const HistogramName& metric,
                              const MetricLabels& labels, double value) {
  absl::MutexLock lock(&families_->mutex);
  families_->histograms
      .Find(families_->registry, prometheus::BuildHistogram(), metric.name,
            metric.help, labels,
            prometheus::Histogram::BucketBoundaries(metric.buckets.begin(),
                                                    metric.buckets.end()))
      .Observe(value);
}

void MetricsRegistry::RemoveSeries(const std::string& label,
                                   const std::string& value) {
  absl::MutexLock lock(&families_->mutex);
  families_->counters.Remove(label, value);
  families_->gauges.Remove(label, value);
  families_->histograms.Remove(label, value);
}

std::string MetricsRegistry::Text() const {
  absl::MutexLock lock(&families_->mutex);
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace lockstep
