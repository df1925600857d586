#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/golden/story.h"

// golden SCRIPT: plays it and compares. golden --rewrite SCRIPT: writes what happened into it, to
// be read before it is committed.
//
// A script is a list of blocks: a command line, a line `----`, the expected output, an empty line.
// A command without `----` must print nothing. Lines that begin with # tell the story.
namespace {

struct Block {
  std::string before;  // comments and empty lines as they stand
  std::string command;
  std::string expected;
};

std::vector<Block> Read(std::istream& in) {
  std::vector<Block> blocks(1);
  bool output = false;
  for (std::string line; std::getline(in, line);) {
    Block& block = blocks.back();
    if (output && !line.empty()) {
      block.expected += line + "\n";
    } else if (output) {
      output = false;
      blocks.emplace_back();
    } else if (line == "----") {
      output = true;
    } else if (line.empty() || line[0] == '#') {
      if (!block.command.empty()) {
        blocks.emplace_back();
      }
      blocks.back().before += line + "\n";
    } else {
      if (!block.command.empty()) {
        blocks.emplace_back();
      }
      blocks.back().command = line;
    }
  }
  return blocks;
}

}  // namespace

int main(int argc, char** argv) {
  const bool rewrite = argc == 3 && std::string(argv[1]) == "--rewrite";
  if (argc != 2 && !rewrite) {
    std::cerr << "usage: golden [--rewrite] SCRIPT\n";
    return 2;
  }
  const std::string path = argv[argc - 1];
  std::ifstream file(path);
  if (!file) {
    std::cerr << "cannot read " << path << "\n";
    return 2;
  }
  elastic::internal::Story story;
  std::ostringstream written;
  int wrong = 0;
  for (const Block& block : Read(file)) {
    written << block.before;
    if (block.command.empty()) {
      continue;
    }
    const std::string actual = story.Run(block.command);
    written << block.command << "\n";
    if (!actual.empty()) {
      written << "----\n" << actual << "\n";
    }
    if (actual != block.expected) {
      ++wrong;
      if (!rewrite) {
        std::cout << path << ": " << block.command << "\n--- expected\n"
                  << block.expected << "--- actual\n"
                  << actual << "\n";
      }
    }
  }
  if (rewrite) {
    std::ofstream(path) << written.str();
    return 0;
  }
  return wrong == 0 ? 0 : 1;
}
