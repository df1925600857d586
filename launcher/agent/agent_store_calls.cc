// Put and get of the workers, on their way to the core and back.
#include "launcher/agent/agent_driver.h"
#include "proto/local/store_codec.h"

namespace elastic::internal {

Status AgentDriver::SaidOfStore(WorkerIncarnation process, local::FrameKind kind,
                                std::span<const std::byte> frame) {
  if (kind == local::FrameKind::kPut) {
    ASSIGN_OR_RETURN(local::PutCall call, local::PutOf(frame));
    Feed(agent_event::PutCame{process, call.request, std::move(call.put)}, process);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(local::GetCall call, local::GetOf(frame));
  Feed(agent_event::GetCame{process, call.request, std::move(call.key)}, process);
  return OkStatus();
}

void AgentDriver::Carry(const agent_action::AnswerStore& action) {
  const AgentStore::Answer& answer = action.answer;
  link_->Send(answer.process, local::StoreReplyFrame({answer.request, answer.code, answer.bytes}));
}

}  // namespace elastic::internal
