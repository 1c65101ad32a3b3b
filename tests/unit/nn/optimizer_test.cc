// Updates against the papers' and PyTorch's formulas in fp64.
#include "worker/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "kernels/device.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

// One tensor's values in fp64.
struct Plain {
  std::vector<double> p, g, m, v;
  bool decay = false;
};

double NormOf(const std::vector<double>& values) {
  double sum = 0.0;
  for (double value : values) sum += value * value;
  return std::sqrt(sum);
}

struct OptimizerCase {
  std::string name;
  OptimizerSpec spec;
  // One step `t` (from 1) on a tensor whose gradient is already clipped.
  std::function<void(const OptimizerSpec&, Plain&, double rate, int t)> update;
};

std::ostream& operator<<(std::ostream& out, const OptimizerCase& c) {
  return out << c.name;
}

void AdamW(const OptimizerSpec& spec, Plain& x, double rate, int t) {
  for (size_t i = 0; i < x.p.size(); ++i) {
    if (x.decay) x.p[i] -= rate * spec.weight_decay * x.p[i];
    x.m[i] = spec.beta1 * x.m[i] + (1 - spec.beta1) * x.g[i];
    x.v[i] = spec.beta2 * x.v[i] + (1 - spec.beta2) * x.g[i] * x.g[i];
    const double m = x.m[i] / (1 - std::pow(spec.beta1, t));
    const double v = x.v[i] / (1 - std::pow(spec.beta2, t));
    x.p[i] -= rate * m / (std::sqrt(v) + spec.epsilon);
  }
}

void Sgd(const OptimizerSpec& spec, Plain& x, double rate, int t) {
  for (size_t i = 0; i < x.p.size(); ++i) {
    const double g = x.g[i] + (x.decay ? spec.weight_decay * x.p[i] : 0.0);
    x.m[i] = spec.momentum * x.m[i] + g;
    x.p[i] -= rate * x.m[i];
  }
}

void Lars(const OptimizerSpec& spec, Plain& x, double rate, int t) {
  const double p = NormOf(x.p), g = NormOf(x.g);
  double ratio = 1.0;
  if (x.decay && p > 0 && g > 0) {
    ratio = spec.trust_coefficient * p / (g + spec.weight_decay * p);
  }
  for (size_t i = 0; i < x.p.size(); ++i) {
    const double step = x.g[i] + (x.decay ? spec.weight_decay * x.p[i] : 0.0);
    x.m[i] = spec.momentum * x.m[i] + rate * ratio * step;
    x.p[i] -= x.m[i];
  }
}

void Lamb(const OptimizerSpec& spec, Plain& x, double rate, int t) {
  std::vector<double> u(x.p.size());
  for (size_t i = 0; i < x.p.size(); ++i) {
    x.m[i] = spec.beta1 * x.m[i] + (1 - spec.beta1) * x.g[i];
    x.v[i] = spec.beta2 * x.v[i] + (1 - spec.beta2) * x.g[i] * x.g[i];
    const double m = x.m[i] / (1 - std::pow(spec.beta1, t));
    const double v = x.v[i] / (1 - std::pow(spec.beta2, t));
    u[i] = m / (std::sqrt(v) + spec.epsilon) +
           (x.decay ? spec.weight_decay * x.p[i] : 0.0);
  }
  const double p = NormOf(x.p), un = NormOf(u);
  const double ratio = x.decay && p > 0 && un > 0 ? p / un : 1.0;
  for (size_t i = 0; i < x.p.size(); ++i) x.p[i] -= rate * ratio * u[i];
}

class OptimizerTest : public ::testing::TestWithParam<OptimizerCase> {
 protected:
  void Create(DType compute) {
    DeviceOptions options;
    options.cpu_level = DetectCpuLevel();
    options.threads = 2;
    ASSERT_OK_AND_ASSIGN(device_, MakeCpuDevice(options));
    std::vector<LogicalTensor> tensors(3);
    tensors[0].name = "a";
    tensors[0].shape = {7, 13};
    tensors[0].decay = true;
    tensors[1].name = "b";
    tensors[1].shape = {29};
    tensors[2].name = "c";
    tensors[2].shape = {3, 40};
    tensors[2].decay = true;
    for (LogicalTensor& tensor : tensors) {
      tensor.held_shape = tensor.shape;
      tensor.initializer = Initializer::kNormal;
      tensor.init_scale = 0.5;
    }
    ASSERT_OK_AND_ASSIGN(
        store_, ParameterStore::Create(device_->stream(), tensors, compute,
                                       GradientStorage::kAllocate));
    store_->Initialize(1);
    ASSERT_OK_AND_ASSIGN(
        optimizer_,
        Optimizer::Create(device_->stream(), GetParam().spec, *store_));
  }

  void FillGradients(std::mt19937& random) {
    std::normal_distribution<float> normal;
    float* gradient = store_->gradient().data<float>();
    for (int64_t i = 0; i < store_->elements(); ++i) {
      gradient[i] = normal(random);
    }
  }

  std::vector<Plain> PlainTensors() const {
    std::vector<Plain> tensors;
    for (size_t i = 0; i < store_->tensors().size(); ++i) {
      const FlatRange range = store_->range(static_cast<int>(i));
      const float* data = store_->master().data<float>();
      Plain plain;
      plain.p.assign(data + range.begin, data + range.end);
      plain.m.resize(plain.p.size());
      plain.v.resize(plain.p.size());
      plain.decay = store_->tensors()[i].decay;
      tensors.push_back(plain);
    }
    return tensors;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<Optimizer> optimizer_;
};

TEST_P(OptimizerTest, FollowsTheFormulasOverSixSteps) {
  Create(DType::kFloat32);
  std::vector<Plain> tensors = PlainTensors();
  std::mt19937 random(2);
  for (int t = 1; t <= 6; ++t) {
    FillGradients(random);
    StepScalars scalars;
    scalars.step = t;
    scalars.learning_rate = 0.01f * static_cast<float>(t);
    scalars.clip_factor = t % 2 == 0 ? 0.25f : 1.0f;
    SetBiasCorrections(GetParam().spec, t, scalars);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const FlatRange range = store_->range(static_cast<int>(i));
      const float* gradient = store_->gradient().data<float>();
      tensors[i].g.assign(gradient + range.begin, gradient + range.end);
      for (double& g : tensors[i].g) g *= scalars.clip_factor;
      GetParam().update(GetParam().spec, tensors[i], scalars.learning_rate, t);
    }
    ASSERT_OK(optimizer_->Step(device_->stream(), &scalars));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const FlatRange range = store_->range(static_cast<int>(i));
    for (int64_t e = range.begin; e < range.end; ++e) {
      // Six updates, each of a handful of fp32 roundings.
      ASSERT_NEAR(store_->master().data<float>()[e],
                  tensors[i].p[e - range.begin], 3e-6)
          << store_->tensors()[i].name << "[" << e - range.begin << "]";
    }
  }
}

TEST_P(OptimizerTest, NothingChangesWhenTheNormIsNotFinite) {
  Create(DType::kFloat32);
  std::mt19937 random(2);
  FillGradients(random);
  const float* data = store_->master().data<float>();
  const std::vector<float> before(data, data + store_->elements());
  StepScalars scalars;
  scalars.learning_rate = 0.1f;
  scalars.finite = 0;
  SetBiasCorrections(GetParam().spec, 1, scalars);
  ASSERT_OK(optimizer_->Step(device_->stream(), &scalars));
  EXPECT_EQ(before, std::vector<float>(data, data + store_->elements()));
  for (const OptimizerState& state : optimizer_->states()) {
    for (int64_t i = 0; i < store_->elements(); ++i) {
      ASSERT_EQ(state.values.data<float>()[i], 0.0f) << state.kind;
    }
  }
}

TEST_P(OptimizerTest, Bf16CopiesFollowTheMasterWeights) {
  Create(DType::kBFloat16);
  std::mt19937 random(2);
  FillGradients(random);
  StepScalars scalars;
  scalars.learning_rate = 0.1f;
  SetBiasCorrections(GetParam().spec, 1, scalars);
  ASSERT_OK(optimizer_->Step(device_->stream(), &scalars));
  for (int s = 0; s < static_cast<int>(store_->segments().size()); ++s) {
    // Vectors are computed with as they are.
    ASSERT_EQ(store_->compute_copy(s).empty(), !store_->segments()[s].matrices);
    if (store_->compute_copy(s).empty()) continue;
    const uint16_t* copies = store_->compute_copy(s).data<uint16_t>();
    for (int64_t i = 0; i < store_->segments()[s].elements; ++i) {
      const uint32_t bits = static_cast<uint32_t>(copies[i]) << 16;
      float copy;
      std::memcpy(&copy, &bits, sizeof(copy));
      const float master = store_->master(s).data<float>()[i];
      ASSERT_NEAR(copy, master, std::abs(master) / 256) << i;
    }
  }
}

std::vector<OptimizerCase> Cases() {
  OptimizerSpec spec;
  spec.weight_decay = 0.1;
  spec.trust_coefficient = 0.02;
  std::vector<OptimizerCase> cases;
  spec.name = v1::OPTIMIZER_NAME_ADAMW;
  cases.push_back({"AdamW", spec, AdamW});
  spec.name = v1::OPTIMIZER_NAME_SGD;
  cases.push_back({"Sgd", spec, Sgd});
  spec.name = v1::OPTIMIZER_NAME_LARS;
  cases.push_back({"Lars", spec, Lars});
  spec.name = v1::OPTIMIZER_NAME_LAMB;
  cases.push_back({"Lamb", spec, Lamb});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, OptimizerTest,
                         ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<OptimizerCase>& c) {
                           return c.param.name;
                         });

}  // namespace
}  // namespace lockstep
