#include "worker/train/generator.h"

#include <string>

#include "tests/unit/train/train_fixture.h"
#include "worker/data/byte_tokenizer.h"

namespace lockstep {
namespace {

using GeneratorTest = testing::TrainFixture;

// Of 4096 ids the tokenizer has 257.
TEST_F(GeneratorTest, PaddedIdsAreNeverDrawn) {
  spec().mutable_model()->set_vocabulary(4096);
  const ByteTokenizer tokenizer;
  ASSERT_OK_AND_ASSIGN(const TrainingState state,
                       MakeState(tokenizer.vocabulary(), Purpose::kUse));
  v1::GenerateAction action;
  action.set_prompt("a");
  action.set_max_tokens(20);
  action.set_temperature(1.0);
  action.set_top_k(0);
  std::string text;
  EXPECT_OK(Generate(*context_, state, tokenizer, action, 8,
                     [&](const std::string& bytes) { text += bytes; }));
  EXPECT_FALSE(text.empty());
}

}  // namespace
}  // namespace lockstep
