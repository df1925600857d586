#include "worker_runtime/examples/fashion_mnist/dataset.h"

#include <zlib.h>

#include <memory>

namespace fashion {

namespace {

constexpr uint32_t kImagesMagic = 0x00000803;  // bytes, three dimensions
constexpr uint32_t kLabelsMagic = 0x00000801;  // bytes, one dimension
constexpr uint32_t kPicturesMax = 1u << 20;

struct CloseFile {
  void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, CloseFile>;

bool ReadNumber(gzFile file, uint32_t& value) {
  unsigned char bytes[4];
  if (gzread(file, bytes, sizeof bytes) != sizeof bytes) {
    return false;
  }
  value = uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
  return true;
}

struct Format {
  uint32_t magic;
  size_t item_bytes;
};

elastic::Status ReadFile(const std::string& path, Format format, std::vector<uint8_t>& bytes) {
  const File file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) {
    return {elastic::Code::kFailedPrecondition,
            "no data set: cannot open " + path +
                "; install Debian's dataset-fashion-mnist, or give its folder with --data"};
  }
  elastic::Status torn(elastic::Code::kDataLoss,
                       path + " is not a gzipped IDX file of Fashion-MNIST");
  uint32_t magic = 0;
  uint32_t count = 0;
  if (!ReadNumber(file.get(), magic) || magic != format.magic || !ReadNumber(file.get(), count) ||
      count == 0 || count > kPicturesMax) {
    return torn;
  }
  for (uint32_t side = 0; format.item_bytes > 1 && side < 2; ++side) {
    uint32_t pixels = 0;
    if (!ReadNumber(file.get(), pixels) || pixels * pixels != format.item_bytes) {
      return torn;
    }
  }
  bytes.resize(count * format.item_bytes);
  const auto wanted = static_cast<unsigned>(bytes.size());
  return gzread(file.get(), bytes.data(), wanted) == static_cast<int>(wanted) ? elastic::Status()
                                                                              : torn;
}

elastic::Status ReadPictures(const std::string& prefix, Pictures& pictures) {
  ELASTIC_RETURN_IF_ERROR(ReadFile(prefix + "-images-idx3-ubyte.gz",
                                   {.magic = kImagesMagic, .item_bytes = kPixels},
                                   pictures.pixels));
  ELASTIC_RETURN_IF_ERROR(ReadFile(prefix + "-labels-idx1-ubyte.gz",
                                   {.magic = kLabelsMagic, .item_bytes = 1}, pictures.labels));
  if (pictures.pixels.size() != pictures.count() * kPixels) {
    return {elastic::Code::kDataLoss, prefix + "-*: not as many labels as pictures"};
  }
  for (const uint8_t label : pictures.labels) {
    if (label >= kClasses) {
      return {elastic::Code::kDataLoss, prefix + "-labels-idx1-ubyte.gz: a label above 9"};
    }
  }
  return elastic::Status();
}

}  // namespace

elastic::Status Load(const std::string& folder, Dataset& dataset) {
  ELASTIC_RETURN_IF_ERROR(ReadPictures(folder + "/train", dataset.train));
  return ReadPictures(folder + "/t10k", dataset.test);
}

}  // namespace fashion
