#include "worker/nn/parameter_store.h"

#include <utility>

#include "common/log.h"
#include "common/status_macros.h"
#include "kernels/ops/elementwise.h"
#include "worker/nn/initializer.h"

namespace lockstep {
namespace {

// Elements that get their initial values between two signs of life.
constexpr size_t kInitialized = size_t{4} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterStore>> ParameterStore::Create(
    Stream& stream, std::vector<LogicalTensor> tensors, DType compute_dtype,
    GradientStorage gradients) {
  std::unique_ptr<ParameterStore> store(new ParameterStore());
  store->tensors_ = std::move(tensors);
  for (const LogicalTensor& tensor : store->tensors_) {
    const FlatRange range = {store->elements_,
                             store->elements_ + tensor.elements()};
    if (tensor.unit == store->units()) {
      store->unit_ranges_.push_back({range.begin, range.begin});
    }
    CHECK(tensor.unit == store->units() - 1)
        << tensor.name << " in unit " << tensor.unit;
    store->unit_ranges_.back().end = range.end;
    store->by_name_[tensor.name] = static_cast<int>(store->ranges_.size());
    store->ranges_.push_back(range);
    store->elements_ = range.end;
  }
  const Shape flat = {store->elements_};
  ASSIGN_OR_RETURN(store->master_, AllocateTensor(stream, DType::kFloat32, flat,
                                                  MemoryCategory::kParameter,
                                                  RowPadding::kDense));
  if (compute_dtype != DType::kFloat32) {
    ASSIGN_OR_RETURN(
        store->compute_,
        AllocateTensor(stream, compute_dtype, flat, MemoryCategory::kParameter,
                       RowPadding::kDense));
  }
  if (gradients == GradientStorage::kAllocate) {
    ASSIGN_OR_RETURN(
        store->gradient_,
        AllocateTensor(stream, DType::kFloat32, flat, MemoryCategory::kGradient,
                       RowPadding::kDense));
    RETURN_IF_ERROR(ops::Zero(stream, store->gradient_));
  }
  return store;
}

bool ParameterStore::Contains(std::string_view name) const {
  return by_name_.contains(std::string(name));
}

Parameter ParameterStore::Get(std::string_view name) const {
  return Stacked({std::string(name)});
}

Parameter ParameterStore::Stacked(const std::vector<std::string>& names) const {
  int64_t begin = 0, end = 0, rows = 0, cols = 0;
  bool matrix = false;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto it = by_name_.find(names[i]);
    CHECK(it != by_name_.end()) << "no parameter " << names[i];
    const LogicalTensor& tensor = tensors_[it->second];
    const FlatRange range = ranges_[it->second];
    if (i == 0) {
      begin = end = range.begin;
      matrix = tensor.shape.size() == 2;
      cols = tensor.shape.back();
    }
    CHECK(range.begin == end) << names[i] << " is not adjacent";
    CHECK((tensor.shape.size() == 2) == matrix &&
          (!matrix || tensor.shape.back() == cols))
        << names[i] << " can't be stacked";
    rows += tensor.shape.front();
    end = range.end;
  }
  return View(begin, matrix ? Shape{rows, cols} : Shape{rows});
}

Parameter ParameterStore::View(int64_t begin, Shape shape) const {
  const auto slice = [&](const Tensor& arena) {
    return arena.Slice(begin, shape.elements()).Reshaped(shape);
  };
  Parameter parameter;
  parameter.master = slice(master());
  parameter.compute = slice(compute());
  if (!gradient_.empty()) parameter.gradient = slice(gradient_);
  return parameter;
}

void ParameterStore::Initialize(uint64_t seed,
                                const std::function<void()>& alive) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const FlatRange range = ranges_[i];
    const auto values =
        absl::MakeSpan(master().data<float>() + range.begin,
                       static_cast<size_t>(range.end - range.begin));
    for (size_t offset = 0; offset < values.size(); offset += kInitialized) {
      if (alive) alive();
      InitializeValues(tensors_[i], seed, static_cast<int64_t>(offset),
                       values.subspan(offset, kInitialized));
    }
  }
}

absl::Status ParameterStore::RefreshCompute(Stream& stream) {
  if (compute_.empty()) return absl::OkStatus();
  return ops::Convert(stream, master_, compute_);
}

}  // namespace lockstep
