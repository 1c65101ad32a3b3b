#include "coordinator/membership/worker_registry.h"

#include "common/log.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FakeClock;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RecordingConnection : public WorkerConnection {
 public:
  void Send(const v1::CoordinatorMessage& message) override { ++sent; }
  void Close(const absl::Status& status) override { closed = status; }
  int sent = 0;
  std::optional<absl::Status> closed;
};

v1::WorkerHello Hello(const std::string& name, const std::string& incarnation,
                      int devices = 2) {
  v1::WorkerHello hello;
  hello.set_name(name);
  hello.set_incarnation(incarnation);
  hello.set_address("10.0.0.1:7800");
  for (int i = 0; i < devices; ++i) {
    v1::DeviceInfo& device = *hello.add_devices();
    device.set_id("cpu:" + std::to_string(i));
    device.set_kind("cpu");
    device.set_memory_bytes(1000 + i);
  }
  return hello;
}

v1::GangId Gang(const std::string& job, int64_t generation) {
  v1::GangId gang;
  gang.set_job(job);
  gang.set_generation(generation);
  return gang;
}

class WorkerRegistryTest : public ::testing::Test {
 protected:
  std::shared_ptr<RecordingConnection> Connect(const v1::WorkerHello& hello) {
    auto connection = std::make_shared<RecordingConnection>();
    const auto admitted = registry_.Admit(hello, connection);
    CHECK(admitted.ok()) << admitted.status();
    last_ = *admitted;
    return connection;
  }
  std::string StateOf(const std::string& name) {
    for (const v1::WorkerInfo& info : registry_.Infos()) {
      if (info.name() == name) return info.state();
    }
    return "unknown";
  }

  FakeClock clock_;
  WorkerRegistry registry_{clock_, {.lease = absl::Seconds(10)}};
  WorkerRegistry::Admitted last_;
  const WorkerLife life_{"w0", "i1"};
};

TEST_F(WorkerRegistryTest, ConnectedWorkerOffersItsDevices) {
  Connect(Hello("w0", "i1"));
  const ClusterView view = registry_.View();
  ASSERT_THAT(view.workers, SizeIs(1));
  EXPECT_EQ(view.devices(), 2);
  EXPECT_EQ(view.free_devices(), 2);
  EXPECT_EQ(view.workers[0].host, "10.0.0.1");
  EXPECT_EQ(StateOf("w0"), "READY");
}

TEST_F(WorkerRegistryTest, ExtendedLeaseEndsLater) {
  const auto connection = Connect(Hello("w0", "i1"));
  ASSERT_TRUE(registry_.Disconnect("w0", connection.get()));
  clock_.Advance(absl::Seconds(60));
  registry_.Extend(absl::Seconds(55));
  EXPECT_THAT(registry_.Expire(), SizeIs(0));
  EXPECT_EQ(registry_.DisconnectedFor(life_), absl::Seconds(5));
  clock_.Advance(absl::Seconds(5));
  EXPECT_THAT(registry_.Expire(), SizeIs(1));
}

TEST_F(WorkerRegistryTest, HeldDevicesAreNotFreeUntilReleased) {
  Connect(Hello("w0", "i1"));
  registry_.Hold(life_, "cpu:0", Gang("j", 1), 0);
  registry_.Hold(life_, "cpu:1", Gang("j", 1), 1);
  EXPECT_EQ(registry_.View().free_devices(), 0);
  EXPECT_EQ(registry_.View().workers[0].devices[0].job, "j");
  registry_.Release(Gang("j", 2), 0);
  EXPECT_EQ(registry_.View().free_devices(), 0);
  registry_.Release(Gang("j", 1), 0);
  EXPECT_EQ(registry_.View().free_devices(), 1);
  registry_.ReleaseGang(Gang("j", 1));
  EXPECT_EQ(registry_.View().free_devices(), 2);
}

TEST_F(WorkerRegistryTest, SilenceEndsTheLease) {
  const auto connection = Connect(Hello("w0", "i1"));
  clock_.Advance(absl::Seconds(9));
  EXPECT_TRUE(registry_.Heard("w0", connection.get()));
  clock_.Advance(absl::Seconds(9));
  EXPECT_THAT(registry_.Expire(), SizeIs(0));
  clock_.Advance(absl::Seconds(1));
  const auto expired = registry_.Expire();
  ASSERT_THAT(expired, SizeIs(1));
  EXPECT_EQ(expired[0], life_);
  EXPECT_EQ(StateOf("w0"), "LOST");
  EXPECT_TRUE(connection->closed.has_value());
  EXPECT_THAT(registry_.Expire(), SizeIs(0));
  EXPECT_THAT(registry_.View().workers, SizeIs(0));
}

TEST_F(WorkerRegistryTest, BrokenStreamIsNotedAtOnceAndMayComeBack) {
  const auto connection = Connect(Hello("w0", "i1"));
  registry_.Hold(life_, "cpu:0", Gang("j", 1), 0);
  EXPECT_TRUE(registry_.Disconnect("w0", connection.get()));
  EXPECT_FALSE(registry_.Disconnect("w0", connection.get()));
  EXPECT_EQ(StateOf("w0"), "DISCONNECTED");
  EXPECT_THAT(registry_.View().workers, SizeIs(0));
  EXPECT_FALSE(registry_.Send(life_, {}));
  clock_.Advance(absl::Seconds(3));
  EXPECT_EQ(registry_.DisconnectedFor(life_), absl::Seconds(3));
  Connect(Hello("w0", "i1"));
  EXPECT_FALSE(last_.replaced.has_value());
  EXPECT_EQ(registry_.DisconnectedFor(life_), std::nullopt);
  EXPECT_EQ(registry_.View().free_devices(), 1);
}

TEST_F(WorkerRegistryTest, NewStreamOfTheSameLifeReplacesTheOld) {
  const auto old = Connect(Hello("w0", "i1"));
  const auto connection = Connect(Hello("w0", "i1"));
  EXPECT_EQ(last_.old_connection, old);
  EXPECT_FALSE(registry_.Heard("w0", old.get()));
  EXPECT_FALSE(registry_.Disconnect("w0", old.get()));
  EXPECT_TRUE(registry_.Send(life_, {}));
  EXPECT_EQ(connection->sent, 1);
}

TEST_F(WorkerRegistryTest, SecondProcessOfALivingNameIsRefused) {
  Connect(Hello("w0", "i1"));
  EXPECT_THAT(registry_.Admit(Hello("w0", "i2"),
                              std::make_shared<RecordingConnection>()),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("connected already")));
}

TEST_F(WorkerRegistryTest, RestartedWorkerReplacesItsOldLifeWithItsRanks) {
  const auto old = Connect(Hello("w0", "i1"));
  registry_.Hold(life_, "cpu:0", Gang("j", 1), 0);
  EXPECT_TRUE(registry_.IsNew("w0", 5));
  registry_.Disconnect("w0", old.get());
  Connect(Hello("w0", "i2"));
  ASSERT_TRUE(last_.replaced.has_value());
  EXPECT_EQ(*last_.replaced, life_);
  EXPECT_EQ(registry_.View().free_devices(), 2);
  EXPECT_TRUE(registry_.IsNew("w0", 1));
  EXPECT_EQ(registry_.DisconnectedFor(life_), absl::InfiniteDuration());
}

TEST_F(WorkerRegistryTest, RepeatedSequenceIsKnownAcrossReconnects) {
  const auto connection = Connect(Hello("w0", "i1"));
  EXPECT_TRUE(registry_.IsNew("w0", 1));
  EXPECT_TRUE(registry_.IsNew("w0", 2));
  registry_.Disconnect("w0", connection.get());
  Connect(Hello("w0", "i1"));
  EXPECT_FALSE(registry_.IsNew("w0", 2));
  EXPECT_TRUE(registry_.IsNew("w0", 3));
}

TEST_F(WorkerRegistryTest, ExpectedWorkerIsLostWhenItStaysAway) {
  registry_.Expect(life_, absl::Seconds(30));
  registry_.Hold(life_, "cpu:0", Gang("j", 1), 0);
  clock_.Advance(absl::Seconds(29));
  EXPECT_THAT(registry_.Expire(), SizeIs(0));
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(registry_.Expire(), SizeIs(1));
}

TEST_F(WorkerRegistryTest, SenselessHelloIsRefused) {
  const auto connection = std::make_shared<RecordingConnection>();
  EXPECT_THAT(registry_.Admit(Hello("", "i1"), connection),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      registry_.Admit(Hello("w0", ""), connection),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("incarnation")));
  v1::WorkerHello twice = Hello("w0", "i1");
  *twice.add_devices() = twice.devices(0);
  EXPECT_THAT(
      registry_.Admit(twice, connection),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cpu:0 twice")));
  EXPECT_EQ(StateOf("w0"), "unknown");
}

}  // namespace
}  // namespace lockstep
