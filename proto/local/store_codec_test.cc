#include "proto/local/store_codec.h"

#include <catch2/catch.hpp>

#include "rendezvous/base/limits.h"

namespace elastic::internal::local {
namespace {

const PutCall kPutCall{
    .request = 7,
    .put = {.key = {.generation = {ServerIncarnation{3}, GenerationNumber{9}, 11}, .name = "id"},
            .value = std::string("a\0b", 3)}};

TEST_CASE("Put, get and answer come back as they were sent") {
  const StatusOr<PutCall> put = PutOf(PutFrame(kPutCall));
  REQUIRE(put.ok());
  CHECK(put->request == 7);
  CHECK(put->put == kPutCall.put);
  const StatusOr<GetCall> get = GetOf(GetFrame({8, kPutCall.put.key}));
  REQUIRE(get.ok());
  CHECK(get->request == 8);
  CHECK(get->key == kPutCall.put.key);
  const auto reply = StoreReplyOf(StoreReplyFrame({9, StatusCode::kAborted, "over"}));
  REQUIRE(reply.ok());
  CHECK(reply->request == 9);
  CHECK(reply->code == StatusCode::kAborted);
  CHECK(reply->bytes == "over");
}

TEST_CASE("A frame that is cut anywhere is refused") {
  const Frame whole = PutFrame(kPutCall);
  for (size_t bytes = sizeof(FrameHeader); bytes < whole.size(); ++bytes) {
    CHECK(PutOf(Frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)))
              .status()
              .code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Keys and values over their limits are refused") {
  PutCall call = kPutCall;
  call.put.key.name = "";
  CHECK(PutOf(PutFrame(call)).status().code() == StatusCode::kInvalidArgument);
  call.put.key.name = std::string(kStoreKeyBytesMax + 1, 'k');
  CHECK(PutOf(PutFrame(call)).status().code() == StatusCode::kInvalidArgument);
  CHECK(GetOf(GetFrame({1, call.put.key})).status().code() == StatusCode::kInvalidArgument);
  call.put.key.name = std::string(kStoreKeyBytesMax, 'k');
  call.put.value = std::string(kStoreValueBytesMax, 'v');
  CHECK(PutOf(PutFrame(call)).ok());
  call.put.value += 'v';
  CHECK(PutOf(PutFrame(call)).status().code() == StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace elastic::internal::local
