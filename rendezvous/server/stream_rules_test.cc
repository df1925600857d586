#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <thread>

#include "elastic/v1/rendezvous.grpc.pb.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/grpc_deadline.h"
#include "rendezvous/server/server_fixture.h"

// What the server says to an agent that does not keep to the protocol, seen by a bare client.
namespace elastic::internal {

namespace {

class BareStream {
 public:
  explicit BareStream(const std::string& target)
      : stub_(
            v1::Agents::NewStub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()))) {
    context_.set_deadline(GrpcDeadline(std::chrono::seconds(10)));
    stream_ = stub_->Connect(&context_);
  }
  void Write(const v1::AgentMessage& message) { stream_->Write(message); }
  v1::ServerMessage Read() {
    v1::ServerMessage message;
    CHECK(stream_->Read(&message));
    return message;
  }
  // The status with which the server ends the stream.
  grpc::Status End() {
    v1::ServerMessage message;
    while (stream_->Read(&message)) {
    }
    return stream_->Finish();
  }

 private:
  std::unique_ptr<v1::Agents::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>> stream_;
};

// Sends a report again and again, as a heartbeat without news.
class Beater {
 public:
  Beater(BareStream& stream, v1::AgentMessage message)
      : thread_([this, &stream, report = std::move(message)]() mutable {
          MutexLock lock(mutex_);
          for (uint64_t sequence = 1; !stopping_; ++sequence) {
            report.mutable_report()->set_sequence(sequence);
            stream.Write(report);
            changed_.wait_for(mutex_, std::chrono::milliseconds(50));
          }
        }) {}
  ~Beater() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

v1::AgentMessage Hello() {
  v1::AgentMessage message;
  v1::AgentHello* hello = message.mutable_hello();
  hello->set_protocol_version(kProtocolVersion);
  hello->set_job_id("test-job");
  hello->set_host("a");
  hello->set_slots(2);
  return message;
}

}  // namespace

TEST_CASE_METHOD(ServerFixture, "A hello that is wrong ends the stream with its reason") {
  StartServer();
  BareStream stream(agent_address());
  v1::AgentMessage message = Hello();
  grpc::StatusCode expected = grpc::StatusCode::INVALID_ARGUMENT;
  std::string named;
  SECTION("protocol version of the future") {
    message.mutable_hello()->set_protocol_version(kProtocolVersion + 1);
    expected = grpc::StatusCode::FAILED_PRECONDITION;
    named = "protocol version 2";
  }
  SECTION("no slots") {
    message.mutable_hello()->set_slots(0);
    named = "hello.slots is 0";
  }
  SECTION("too many slots") {
    message.mutable_hello()->set_slots(kSlotsPerHostMax + 1);
    named = "hello.slots";
  }
  SECTION("no host") {
    message.mutable_hello()->clear_host();
    named = "hello.host";
  }
  SECTION("a report instead") {
    message.mutable_report()->set_host("a");
    named = "before the hello";
  }
  SECTION("nothing") {
    message.clear_hello();
    named = "neither hello nor report";
  }
  stream.Write(message);
  const grpc::Status status = stream.End();
  CHECK(status.error_code() == expected);
  CHECK_THAT(status.error_message(), Catch::Contains(named));
}

TEST_CASE_METHOD(ServerFixture, "A message that is wrong after the hello ends the stream") {
  StartServer();
  BareStream stream(agent_address());
  stream.Write(Hello());
  const v1::ServerMessage welcome = stream.Read();
  REQUIRE(welcome.has_welcome());
  CHECK(welcome.welcome().agent() == 1);
  CHECK(welcome.welcome().server_incarnation() == 1);

  v1::AgentMessage message;
  std::string named;
  SECTION("a second hello") {
    message = Hello();
    named = "second hello";
  }
  SECTION("a report of another host") {
    message.mutable_report()->set_host("b");
    named = "report.host is `b`";
  }
  SECTION("an unknown life") {
    message.mutable_report()->set_host("a");
    message.mutable_report()->add_workers()->set_life(static_cast<v1::WorkerLife>(77));
    named = "worker.life is 77";
  }
  stream.Write(message);
  const grpc::Status status = stream.End();
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(status.error_message(), Catch::Contains(named));
  // The stream that was ended counts as gone, and its host may come back.
  AddAgent("a").WaitFor([](const LittleAgent::View& v) { return v.registrations == 1; });
}

TEST_CASE_METHOD(ServerFixture, "A directive leaves out the rosters of the directive before it") {
  job().np = job().max_np = job().min_np = 1;
  job().hosts = {{"a", 2}};
  StartServer();
  BareStream stream(agent_address());
  stream.Write(Hello());
  const uint32_t agent = stream.Read().welcome().agent();

  v1::AgentMessage message;
  v1::AgentReport* report = message.mutable_report();
  report->set_host("a");
  report->set_agent(agent);
  v1::WorkerReport* worker = report->add_workers();
  worker->mutable_incarnation()->set_agent(agent);
  worker->mutable_incarnation()->set_counter(1);
  worker->set_life(v1::WORKER_LIFE_WAITING);
  worker->set_joined(true);
  worker->mutable_data()->set_address("127.0.0.1");
  worker->mutable_data()->set_port(4000);
  Beater beater(stream, message);
  int with_contents = 0;
  int by_name = 0;
  while (by_name < 3) {
    const v1::ServerMessage answer = stream.Read();
    REQUIRE(answer.has_directive());
    if (answer.directive().has_installed()) {
      (answer.directive().installed().has_roster() ? with_contents : by_name) += 1;
    }
  }
  CHECK(with_contents == 1);
}

namespace {

// Streams that say nothing and wait for their end.
class SilentStreams {
 public:
  SilentStreams(const std::string& target, int count)
      : stub_(
            v1::Agents::NewStub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()))) {
    for (int i = 0; i < count; ++i) {
      streams_.push_back(std::make_unique<Stream>(*this));
    }
  }
  ~SilentStreams() {
    for (auto& stream : streams_) {
      stream->context.TryCancel();
    }
    WaitForEnds(streams_.size());
  }
  std::vector<grpc::Status> WaitForEnds(size_t count) {
    MutexLock lock(mutex_);
    while (ends_.size() < count) {
      changed_.wait(mutex_);
    }
    return ends_;
  }

 private:
  struct Stream final : grpc::ClientBidiReactor<v1::AgentMessage, v1::ServerMessage> {
    explicit Stream(SilentStreams& owner_given) : owner(owner_given) {
      owner.stub_->async()->Connect(&context, this);
      StartCall();
    }
    void OnDone(const grpc::Status& status) override {
      MutexLock lock(owner.mutex_);
      owner.ends_.push_back(status);
      owner.changed_.notify_all();
    }
    SilentStreams& owner;
    grpc::ClientContext context;
  };

  std::unique_ptr<v1::Agents::Stub> stub_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<grpc::Status> ends_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace

// What a server answers to a call of this method with an empty message.
grpc::StatusCode Answer(const std::string& target, const std::string& method) {
  grpc::GenericStub stub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(std::chrono::seconds(10)));
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;
  const auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&nothing, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  REQUIRE(queue.Next(&tag, &ok));
  return status.error_code();
}

TEST_CASE_METHOD(ServerFixture, "Reflection and health are read at the status address only") {
  StartServer();
  for (const char* method : {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                             "/grpc.health.v1.Health/Check"}) {
    INFO(method);
    CHECK(Answer(server().agent_target(), method) == grpc::StatusCode::UNIMPLEMENTED);
    CHECK(Answer(server().status_address(), method) == grpc::StatusCode::OK);
  }
}

TEST_CASE_METHOD(ServerFixture, "One stream more than the limit is refused with the limit's name") {
  StartServer();
  SilentStreams streams(agent_address(), kAgentStreamsMax + 1);
  const std::vector<grpc::Status> ends = streams.WaitForEnds(1);
  REQUIRE(ends.size() == 1);
  CHECK(ends.front().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK_THAT(ends.front().error_message(), Catch::Contains("kAgentStreamsMax"));
}

}  // namespace elastic::internal
