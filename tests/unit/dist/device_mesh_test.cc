#include "worker/dist/device_mesh.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/dist/group_ranks.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::InMemoryStore;
using testing::StatusIs;
using testing::TestAllocator;

v1::Layout MakeLayout(int tp, int cp, int fsdp, int dp, int pp) {
  v1::Layout layout;
  layout.set_tp(tp);
  layout.set_cp(cp);
  layout.set_fsdp(fsdp);
  layout.set_dp(dp);
  layout.set_pp(pp);
  return layout;
}

// Says what it was asked for, and makes local groups.
class RecordingFactory : public GroupFactory {
 public:
  absl::StatusOr<std::unique_ptr<ProcessGroup>> Make(
      const GroupSpec& spec) override {
    made.push_back(absl::StrCat(spec.name, " ", spec.rank, "/", spec.size, " ",
                                spec.key_prefix));
    return std::make_unique<LocalProcessGroup>(spec.name);
  }
  absl::StatusOr<std::unique_ptr<PeerLink>> MakePeerLink(
      const GroupSpec& spec) override {
    made.push_back(
        absl::StrCat("link ", spec.rank, "/", spec.size, " ", spec.key_prefix));
    return nullptr;
  }
  std::vector<std::string> made;
};

TEST(DeviceMeshTest, GroupsAreMadeInOneOrderAndNamedByTheirLowestRank) {
  RecordingFactory factory;
  // Rank 13 of 2 x 1 x 3 x 2 x 2: tp 1, fsdp 0, dp 0, pp 1.
  ASSERT_OK_AND_ASSIGN(
      const auto mesh,
      DeviceMesh::Create(MakeLayout(2, 1, 3, 2, 2), 13, 24, factory));
  EXPECT_THAT(factory.made,
              ElementsAre("world 13/24 world", "tp 1/2 tp-of-rank-12",
                          "fsdp 0/3 fsdp-of-rank-13", "dp 0/2 dp-of-rank-13",
                          "pp 1/2 pp-of-rank-1", "link 1/2 peers-of-rank-1"));
  EXPECT_EQ(mesh->coordinate(MeshAxis::kTp), 1);
  EXPECT_EQ(mesh->coordinate(MeshAxis::kCp), 0);
  EXPECT_EQ(mesh->coordinate(MeshAxis::kPp), 1);
  EXPECT_EQ(mesh->degree(MeshAxis::kFsdp), 3);
  EXPECT_EQ(mesh->group(MeshAxis::kCp).size(), 1);
  EXPECT_EQ(mesh->group(MeshAxis::kCp).name(), "cp");
}

TEST(DeviceMeshTest, StatesAreSharedOverCpThenFsdp) {
  RecordingFactory factory;
  // Rank 9 of 2 x 2 x 3 x 1 x 1: tp 1, cp 0, fsdp 2.
  ASSERT_OK(
      DeviceMesh::Create(MakeLayout(2, 2, 3, 1, 1), 9, 12, factory).status());
  EXPECT_EQ(factory.made.back(), "states 4/6 states-of-rank-1");
  // Where one of them is all of it there is no group of its own.
  ASSERT_OK_AND_ASSIGN(
      const auto sharded,
      DeviceMesh::Create(MakeLayout(1, 1, 3, 1, 1), 1, 3, factory));
  EXPECT_EQ(&sharded->states(), &sharded->group(MeshAxis::kFsdp));
  ASSERT_OK_AND_ASSIGN(
      const auto cut,
      DeviceMesh::Create(MakeLayout(1, 3, 1, 1, 1), 1, 3, factory));
  EXPECT_EQ(&cut->states(), &cut->group(MeshAxis::kCp));
}

TEST(DeviceMeshTest, EveryRankIsInOneGroupOfEachAxis) {
  // A group's name and its members' places in it must come out the same on all
  // ranks, each place once.
  std::multiset<std::string> all;
  for (int rank = 0; rank < 24; ++rank) {
    RecordingFactory factory;
    ASSERT_OK(DeviceMesh::Create(MakeLayout(2, 1, 3, 2, 2), rank, 24, factory)
                  .status());
    all.insert(factory.made.begin(), factory.made.end());
  }
  // The links between stages too.
  EXPECT_EQ(all.size(), 24u * 6);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

TEST(DeviceMeshTest, WorldOfOneNeedsNoBackend) {
  RecordingFactory factory;
  ASSERT_OK_AND_ASSIGN(
      const auto mesh,
      DeviceMesh::Create(MakeLayout(1, 1, 1, 1, 1), 0, 1, factory));
  EXPECT_TRUE(factory.made.empty());
  EXPECT_OK(mesh->world().Barrier()->Wait());
  EXPECT_OK(mesh->group(MeshAxis::kDp).Barrier()->Wait());
}

TEST(DeviceMeshTest, DegreesMustMakeUpTheWorld) {
  RecordingFactory factory;
  EXPECT_THAT(
      DeviceMesh::Create(MakeLayout(2, 1, 1, 3, 1), 0, 8, factory).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "mesh tp 2 x cp 1 x fsdp 1 x dp 3 x pp 1 has 6 ranks, want 8 "
               "(the world's)"));
  EXPECT_THAT(
      DeviceMesh::Create(MakeLayout(1, 0, 1, 8, 1), 0, 8, factory).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("degree of cp is 0")));
  EXPECT_THAT(
      DeviceMesh::Create(MakeLayout(1, 1, 1, 8, 1), 8, 8, factory).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 8")));
  EXPECT_TRUE(factory.made.empty());
}

TEST(DeviceMeshTest, GroupsOverGlooJoinTheRightRanks) {
  InMemoryStore store;
  EXPECT_OK(testing::SpawnRanks(8, [&](int rank) -> absl::Status {
    TestAllocator allocator;
    GlooGroupFactoryOptions options;
    options.store = &store;
    options.allocator = &allocator;
    ASSIGN_OR_RETURN(const auto factory, GlooGroupFactory::Create(options));
    ASSIGN_OR_RETURN(
        const auto mesh,
        DeviceMesh::Create(MakeLayout(2, 1, 1, 2, 2), rank, 8, *factory));
    int stride = 1;
    for (MeshAxis axis : {MeshAxis::kTp, MeshAxis::kDp, MeshAxis::kPp}) {
      int32_t own = rank;
      int32_t all[2] = {-1, -1};
      RETURN_IF_ERROR(
          mesh->group(axis)
              .AllGather(Tensor(&own, DType::kInt32, {1}, DeviceKind::kCpu),
                         Tensor(all, DType::kInt32, {2}, DeviceKind::kCpu))
              ->Wait());
      const int lowest = rank - mesh->coordinate(axis) * stride;
      EXPECT_THAT(all, ElementsAre(lowest, lowest + stride)) << Name(axis);
      stride *= 2;
    }
    return mesh->world().Barrier()->Wait();
  }));
}

TEST(DeviceMeshTest, AbortReachesEveryGroup) {
  InMemoryStore store;
  EXPECT_OK(testing::SpawnRanks(2, [&](int rank) -> absl::Status {
    TestAllocator allocator;
    GlooGroupFactoryOptions options;
    options.store = &store;
    options.allocator = &allocator;
    ASSIGN_OR_RETURN(const auto factory, GlooGroupFactory::Create(options));
    ASSIGN_OR_RETURN(
        const auto mesh,
        DeviceMesh::Create(MakeLayout(1, 1, 1, 2, 1), rank, 2, *factory));
    mesh->Abort();
    for (ProcessGroup* group : {&mesh->world(), &mesh->group(MeshAxis::kDp),
                                &mesh->group(MeshAxis::kTp)}) {
      EXPECT_THAT(group->Barrier()->Wait(),
                  StatusIs(absl::StatusCode::kAborted));
    }
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace lockstep
