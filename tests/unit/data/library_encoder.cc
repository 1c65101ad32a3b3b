// Encodes lines with the SentencePiece library, for comparison with ours: a
// program of its own, as the library can't share a process with our protobuf.
//
//   library_encoder MODEL LINES    prints each line's ids on a line
#include <sentencepiece_processor.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  sentencepiece::SentencePieceProcessor processor;
  if (!processor.Load(argv[1]).ok()) return 1;
  std::ifstream lines(argv[2]);
  for (std::string line; std::getline(lines, line);) {
    std::vector<int> ids;
    if (!processor.Encode(line, &ids).ok()) return 1;
    for (const int id : ids) std::printf("%d ", id);
    std::printf("\n");
  }
  return 0;
}
