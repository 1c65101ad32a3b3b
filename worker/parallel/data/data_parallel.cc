#include "worker/parallel/data/data_parallel.h"

#include "worker/parallel/data/ddp.h"
#include "worker/parallel/data/zero.h"

namespace lockstep {

std::unique_ptr<DataParallel> MakeDataParallel(ProcessGroup& shards,
                                               ProcessGroup& replicas,
                                               Stream& stream,
                                               ParameterStore& store,
                                               const ModelVisits& visits) {
  if (store.sharding().ranks == 1) {
    return std::make_unique<Ddp>(replicas, store, BucketBytes(store));
  }
  return std::make_unique<Zero>(shards, replicas, stream, store, visits);
}

}  // namespace lockstep
