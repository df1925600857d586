"""The lint itself: each rule must catch what it is for, and leave alone what it is not for."""

import os
import pathlib
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "scripts", "lint.d")]
# pylint: disable=wrong-import-position
import lint
import runner

# (path, text, words of the one problem; None: none)
CASES = [
    ("rendezvous/core/a.cc", "std::mutex m;", "thread in a pure core"),
    ("rendezvous/core/a.cc", "#include <thread>", "thread in a pure core"),
    ("launcher/core/a.cc", "std::unordered_map<int, int> m;", "hash order"),
    ("launcher/core/a.cc", "// an unordered_map would do\nstd::map<int, int> m;", None),
    ("worker_runtime/core/a.cc", "#include <fstream>", "I/O in a pure core"),
    ("collectives/schedule/a.cc", "std::random_device d;", "random"),
    ("launcher/cli/a.cc", "std::thread t;", None),
    ("launcher/cli/a.cc", "auto t = std::chrono::steady_clock::now();", "clock outside"),
    ("launcher/cli/a.cc", "clock_gettime(CLOCK_BOOTTIME, &t);", "clock outside"),
    ("rendezvous/base/real_clock.cc", "clock_gettime(CLOCK_BOOTTIME, &t);", None),
    ("launcher/cli/a.cc", "std::this_thread::sleep_for(1ms);", "sleep"),
    ("launcher/cli/a.cc", 'Say("sleep_for(x)");', None),
    ("tests/support/a.cc", "std::this_thread::sleep_for(1ms);", None),
    ("tests/integration/a.py", "time.sleep(1)", "sleep in Python"),
    ("launcher/cli/a.cc", 'system("rm -rf x");', "shell"),
    ("launcher/cli/a.cc", "file.system(x); operating_system(y);", None),
    ("rendezvous/server/a.cc", "uint32_t epoch = 0;", "epoch as a generation"),
    ("rendezvous/base/time.h", "#pragma once\nt.time_since_epoch();", None),
    ("worker_runtime/elastic_sampler.h", "#pragma once\nuint64_t epoch;", None),
    ("launcher/cli/a.cc", "// FIX" + "ME", "FIX" + "ME"),
    ("launcher/cli/a.cc", "// TO" + "DO later", "TO" + "DO"),
    ("launcher/cli/a.cc", "// TO" + "DO(#12) later", None),
    ("README.md", "cd /ho" + "me/somebody", "machine path"),
    ("launcher/cli/a.h", "int x;", "#pragma once"),
    ("launcher/cli/a.cc", "int x;\n" * 401, "lines; the limit"),
    ("worker_runtime/a.cc", '#include "proto/elastic/v1/types.pb.h"', "may not include"),
    ("rendezvous/core/a.cc", '#include "rendezvous/server/server.h"', "may not include"),
    ("rendezvous/core/a.cc", '#include "rendezvous/base/ids.h"', None),
    ("collectives/a.cc", '#include "proto/local/frames.h"', "may not include"),
    ("worker_runtime/a.cc", "#include <grpcpp/grpcpp.h>", "stay out of here"),
]


def EachRuleCatchesWhatItIsForAndNothingElse(_):
    problems = []
    real_read = lint.sources.read
    for name, text, words in CASES:
        path = pathlib.Path(name)
        lint.sources.read = lambda _, text=text: text
        found = list(lint.text_problems([path]))
        lint.sources.read = real_read
        if words is None and found:
            problems.append(f"{name}: {text[:50]!r}: unexpected: {found}")
        if words is not None and not any(words in f for f in found):
            problems.append(f"{name}: {text[:50]!r}: expected {words!r}, found {found}")
    assert not problems, "\n".join(problems)


if __name__ == "__main__":
    runner.main(globals())
