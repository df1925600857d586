#include <set>
#include <string>

#include "rendezvous/base/limits.h"
#include "rendezvous/core/host_list.h"
#include "tests/fuzz/fuzz_input.h"

// What -H takes: any text is a list within the limits or an error with a text, and a list that is
// taken says the same when it is printed and read again.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace elastic::internal;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto hosts = ParseHostList(text);
  if (!hosts.ok()) {
    if (hosts.error().message().empty()) {
      Broken("an error without a text");
    }
    return 0;
  }
  std::set<std::string> names;
  for (const HostSpec& host : *hosts) {
    const bool fits = !host.name.empty() && host.name.size() <= kHostNameBytesMax &&
                      host.slots >= 1 && host.slots <= kSlotsPerHostMax;
    if (!fits || !names.insert(host.name).second) {
      Broken("a host over its limits, or twice: '" + host.name + "'");
    }
  }
  if (hosts->empty() || hosts->size() > static_cast<size_t>(kHostsMax)) {
    Broken("a list without hosts or with too many");
  }
  const std::string printed = FormatHostList(*hosts);
  const auto again = ParseHostList(printed);
  if (!again.ok() || FormatHostList(*again) != printed ||
      CountSlots(*again) != CountSlots(*hosts)) {
    Broken("read again as something else: '" + printed + "'");
  }
  return 0;
}
