// lockstep-tokenizer-trainer: trains a SentencePiece unigram model on a file of
// sentences, one a line. A process of its own: the library carries a protobuf
// of another version than ours, whose symbols would mix
// (docs/decisions/0005-sentencepiece.md). It ends with
// whoever started it.
//
//   lockstep-tokenizer-trainer SENTENCES MODEL VOCABULARY
//
// Exit codes: 0; 1, with the reason on stderr; 2 for bad usage.
#include <sentencepiece_trainer.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <unordered_map>

namespace {

class FileSentences : public sentencepiece::SentenceIterator {
 public:
  explicit FileSentences(const char* path) : stream_(path) { Next(); }
  bool done() const override { return done_; }
  void Next() override { done_ = !std::getline(stream_, line_); }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override {
    if (!stream_.bad()) return {};
    return {sentencepiece::util::StatusCode::kInternal, "can't read"};
  }

 private:
  std::ifstream stream_;
  std::string line_;
  bool done_ = false;
};

int Train(const char* sentences, const char* output, const char* vocabulary) {
  FileSentences iterator(sentences);
  // One thread, no sampling and no random numbers: the same sentences give the
  // same model. Nothing is normalised or added, for losslessness.
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", "unigram"},
      {"vocab_size", vocabulary},
      {"hard_vocab_limit", "false"},
      {"character_coverage", "0.9995"},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"unk_id", "0"},
      {"eos_id", "1"},
      {"bos_id", "-1"},
      {"pad_id", "-1"},
      {"num_threads", "1"},
      {"minloglevel", "3"},
  };
  std::string model;
  const sentencepiece::util::Status status =
      sentencepiece::SentencePieceTrainer::Train(settings, &iterator, &model);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  std::ofstream stream(output, std::ios::binary);
  stream.write(model.data(), static_cast<std::streamsize>(model.size()));
  stream.flush();
  if (!stream) {
    std::perror(output);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const pid_t parent = getppid();
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s SENTENCES MODEL VOCABULARY\n", argv[0]);
    return 2;
  }
  // A parent that died before this call is seen by its changed id.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return 1;
  const int code = Train(argv[1], argv[2], argv[3]);
  // The library's own statics are not worth tearing down.
  _exit(code);
}
