#include "collectives/transport/context.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "collectives/transport/context_impl.h"
#include "rendezvous/base/check.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"

namespace elastic::internal {

namespace {

constexpr uint64_t kListenerTag = ~uint64_t{0};
constexpr uint64_t kKickTag = kListenerTag - 1;
// Two channels of the present generation and two of a prepared one.
constexpr size_t kScratchBlocks = 4;

bool AddToEpoll(int epoll, int fd, uint64_t tag, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

StatusOr<std::unique_ptr<Context>> Context::Create(Options options) {
  if (options.job_id.size() > kJobIdBytesMax) {
    return InvalidArgumentError(StrCat("job id '", options.job_id, "' has ", options.job_id.size(),
                                       " bytes, over the limit of ", kJobIdBytesMax));
  }
  ASSIGN_OR_RETURN(Listener listener, Listen(options.listen_address));
  auto impl = std::make_unique<Impl>(std::move(options), std::move(listener));
  RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Context>(new Context(std::move(impl)));
}

Context::Context(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Context::~Context() = default;
Endpoint Context::endpoint() const { return impl_->listener.endpoint; }
int Context::event_fd() const { return impl_->epoll.get(); }
void Context::Progress() { impl_->Progress(); }
std::optional<Instant> Context::NextDeadline() const { return impl_->NextDeadline(); }
void Context::Cancel(GenerationNumber up_to) { impl_->Cancel(up_to); }
void Context::StopFetch() {
  if (impl_->fetching) {
    impl_->Drop(impl_->fetching->connection);
    impl_->fetching.reset();
  }
}
void Context::AcceptOffer(std::span<std::byte> target) { impl_->AcceptOffer(target); }
void Context::SetSelf(WorkerIncarnation self) { impl_->options.self = self; }
void Context::Connect(const Roster& roster, Channel channel, MeshDone done) {
  impl_->Connect(roster, channel, std::move(done));
}
void Context::Fetch(const Roster& roster, const RosterEntry& holder,
                    std::function<void(Offer)> offered, std::function<void(StatusOr<Held>)> done) {
  impl_->Fetch(roster, holder, std::move(offered), std::move(done));
}
void Context::RetryEdges(GenerationNumber generation) { impl_->RetryEdges(generation); }
void Context::RetryRequests() {
  std::vector<uint64_t> kept;
  for (const auto& [id, connection] : impl_->connections) {
    if (connection->state == Connection::State::kKept) {
      kept.push_back(id);
    }
  }
  for (const uint64_t id : kept) {
    impl_->AskSource(*impl_->connections.at(id));
  }
}

Context::Impl::Impl(Options options_in, Listener listener_in)
    : options(std::move(options_in)),
      listener(std::move(listener_in)),
      epoll(NewEpoll()),
      kick(NewEventFd()),
      scratch(std::make_shared<ScratchPool>(kScratchBlocks)) {}

Status Context::Impl::Start() {
  if (!epoll.valid() || !kick.valid() ||
      !AddToEpoll(epoll.get(), listener.socket.get(), kListenerTag, EPOLLIN) ||
      !AddToEpoll(epoll.get(), kick.get(), kKickTag, EPOLLIN)) {
    return ErrnoError(errno, "cannot watch the data listener");
  }
  return OkStatus();
}

void Context::Impl::Progress() {
  std::array<epoll_event, 256> events;
  const int count = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.u64 == kListenerTag) {
      AcceptAll();
    } else if (event.data.u64 == kKickTag) {
      DrainEventFd(kick.get());
    } else if (const auto found = connections.find(event.data.u64); found != connections.end()) {
      Dispatch(*found->second, event.events);
    } else if (const auto out = watched.find(event.data.u64); out != watched.end()) {
      broken.push_back(out->second);
    }
  }
  Expire(Now());
  // Last, when everything is consistent: callbacks may call back into the context.
  while (!calls.empty()) {
    const std::function<void()> call = std::move(calls.front().second);
    calls.pop_front();
    call();
  }
  // Now no mesh is on its way to its owner. What broke is reported again once it is watched here.
  for (const AssemblyKey& key : std::exchange(broken, {})) {
    Reclaim(key);
  }
}

void Context::Impl::Dispatch(Connection& connection, uint32_t events) {
  using State = Connection::State;
  switch (connection.state) {
    case State::kReadingHello: return ReadHello(connection);
    case State::kDialling: return SendHello(connection);
    case State::kAwaitingReply: return ReadReply(connection);
    case State::kOffered: return ReadGoAhead(connection);
    case State::kDraining: return Drain(connection);
    case State::kReceiving: return ReceiveState(connection);
    case State::kSending:
      if ((events & (EPOLLHUP | EPOLLERR)) == 0) {
        return SendState(connection);
      }
      break;
    case State::kWaiting:
    case State::kKept:
    case State::kChoosing:
    case State::kUp: break;
  }
  Ended(connection, "end of stream");
}

void Context::Impl::Ended(Connection& connection, const std::string& how) {
  const uint64_t id = connection.id;
  const bool ours = connection.state >= Connection::State::kDialling;
  if (ours && connection.hello.purpose == Purpose::kFetch) {
    FailFetch(UnavailableError(StrCat("connection to the holder of the state, worker ",
                                      ToString(connection.hello.to), ", broke: ", how)));
    return;
  }
  if (ours) {
    FailEdge(connection, UnavailableError(how), Blame::kPeer);
  }
  Drop(id);
}

void Context::Impl::Expire(Instant now) {
  if (accept_again && *accept_again <= now) {
    accept_again.reset();
    AddToEpoll(epoll.get(), listener.socket.get(), kListenerTag, EPOLLIN);
  }
  std::vector<uint64_t> late;
  for (const auto& [id, connection] : connections) {
    if (connection->deadline && *connection->deadline <= now) {
      late.push_back(id);
    }
  }
  for (const uint64_t id : late) {
    const auto found = connections.find(id);
    if (found == connections.end()) {
      continue;
    }
    if (found->second->state == Connection::State::kWaiting) {
      Refuse(*found->second, ReplyVerdict::kOverThere);  // the caller is not to blame us for it
    } else {
      Ended(*found->second, "no answer within the limit");
    }
  }
}

std::optional<Instant> Context::Impl::NextDeadline() const {
  std::optional<Instant> next = accept_again;
  for (const auto& [id, connection] : connections) {
    if (connection->deadline && (!next || *connection->deadline < *next)) {
      next = connection->deadline;
    }
  }
  return next;
}

void Context::Impl::Cancel(GenerationNumber up_to) {
  cancelled = std::max(cancelled, up_to);
  std::erase_if(assemblies, [&](const auto& item) { return item.first.first <= up_to; });
  std::erase_if(handed_out, [&](const auto& item) { return item.first.first <= up_to; });
  std::erase_if(watched, [&](const auto& item) { return item.second.first <= up_to; });
  std::erase_if(calls, [&](const auto& call) { return call.first <= up_to; });
  if (fetching && fetching->roster.id.number <= up_to) {
    fetching.reset();
  }
  std::vector<uint64_t> over;
  for (const auto& [id, connection] : connections) {
    const bool says_nothing_yet = connection->state == Connection::State::kReadingHello;
    if (!says_nothing_yet && connection->hello.generation.number <= up_to) {
      over.push_back(id);
    }
  }
  for (const uint64_t id : over) {
    Connection& connection = *connections.at(id);
    if (connection.state == Connection::State::kWaiting ||
        connection.state == Connection::State::kKept) {
      Refuse(connection, ReplyVerdict::kOverThere);  // a mere end would look like our death
    } else {
      Drop(id);
    }
  }
}

void Context::Impl::Call(GenerationNumber number, std::function<void()> call) {
  calls.emplace_back(number, std::move(call));
  RingEventFd(kick.get());
}

Connection& Context::Impl::Add(UniqueFd socket, Connection::State state, uint32_t events) {
  auto connection = std::make_unique<Connection>();
  connection->id = next_id++;
  connection->state = state;
  connection->socket = std::move(socket);
  Connection& added = *connection;
  connections.emplace(added.id, std::move(connection));
  AddToEpoll(epoll.get(), added.socket.get(), added.id, events);
  return added;
}

void Context::Impl::Watch(const Connection& connection, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = connection.id;
  epoll_ctl(epoll.get(), EPOLL_CTL_MOD, connection.socket.get(), &event);
}

void Context::Impl::Drop(uint64_t id) {
  const auto found = connections.find(id);
  if (found == connections.end()) {
    return;
  }
  const std::unique_ptr<Connection> connection = std::move(found->second);
  connections.erase(found);
  if (connection->granted) {
    options.source->Done(connection->hello.generation, connection->hello.from);
  }
}

}  // namespace elastic::internal
