"""What scripts/lint holds the sources to: data, apart from the code that applies it.

Each rule says why in the message that it prints. Paths are relative to the project's root; a folder
stands for everything below it.
"""

import re

# ---- layers: who may include whom (dependencies point one way) ---------------------------------
# First matching row wins; a file may always include its own folder's headers.
BASE = ["rendezvous/base"]
LAYERS = [
    ("rendezvous/base", []),
    ("rendezvous/core", BASE),
    ("rendezvous/store", BASE + ["rendezvous/core"]),
    ("rendezvous/client", BASE + ["rendezvous/core", "proto/elastic"]),
    ("rendezvous/server", BASE + ["rendezvous/core", "rendezvous/store", "proto/elastic",
                                  "rendezvous/client"]),
    ("launcher/core", BASE),
    ("launcher/base", BASE),
    ("launcher/start", BASE + ["rendezvous/core", "launcher/base"]),
    ("launcher/agent", BASE + ["launcher/core", "rendezvous/client", "collectives", "proto/local",
                               "proto/elastic", "launcher/base"]),
    ("launcher/cli", BASE + ["launcher", "rendezvous", "proto/elastic"]),
    ("collectives/schedule", BASE),
    ("collectives", BASE),
    ("worker_runtime/core", BASE),
    ("worker_runtime/examples", ["worker_runtime"]),
    ("worker_runtime", BASE + ["collectives", "proto/local"]),
    ("proto/local", BASE),
    ("tests", [""]),
]
# A unit test may also use what its folder's users use: other layers stand in for the world.
TEST_EXTRA = ["tests/support"]

# Libraries that must not reach libelastic or a pure core, and where they may be included.
HEAVY = re.compile(r"^(grpc|grpcpp|google/protobuf|absl|spdlog|fmt)/|\.pb\.h$")
HEAVY_ALLOWED = ["rendezvous/server", "rendezvous/client", "rendezvous/store", "launcher/agent",
                 "launcher/cli", "tests"]

# ---- banned text ---------------------------------------------------------------------------------
PURE = [r"(^|/)core/", r"^collectives/schedule/"]
ANYWHERE = [r""]

# (name, pattern, where, exceptions, why). Patterns see code without comments and string literals
# unless the name ends in `(text)`.
BANNED = [
    ("thread in a pure core", r"\bstd::(j?thread|mutex|shared_mutex|condition_variable|atomic"
     r"|future|async|lock_guard|unique_lock|scoped_lock)\b|<(thread|mutex|shared_mutex|future"
     r"|condition_variable|atomic)>|rendezvous/base/mutex\.h", PURE, [],
     "a core is one deterministic state machine; its driver owns the threads"),
    ("I/O in a pure core", r"<(iostream|fstream|cstdio|filesystem|unistd\.h|fcntl\.h"
     r"|sys/[a-z]+\.h|stdio\.h)>|\bstd::(cout|cerr|ofstream|ifstream|filesystem)\b"
     r"|\b(f?printf|getenv)\s*\(", PURE,
     [r"_test\.cc$"], "a core returns actions; its driver carries them out"),
    ("hash order in a pure core", r"\bstd::(unordered_\w+|hash)\b|<unordered_(map|set)>", PURE, [],
     "equal input must give equal output on every platform"),
    ("randomness in a pure core", r"\bstd::(random_device|mt19937\w*|\w+_distribution)\b|<random>"
     r"|\brand\s*\(", PURE, [], "take a seeded rendezvous/base/rng.h as an argument"),
    ("logging in a pure core", r"\bLog(Info|Warning|Error|Debug)?\s*\(|\b(WriteLog|SetLogSink)\b",
     PURE, [r"_test\.cc$"], "return an action that says it; the driver logs"),
    ("floating-point time in a pure core", r"\bduration<(double|float)\b", PURE, [r"_test\.cc$"],
     "durations are nanoseconds"),

    ("clock outside real_clock.cc", r"\bclock_gettime\s*\(|\bgettimeofday\s*\(|_clock::now\s*\("
     r"|\bstd::time\s*\(|(?<![\w:.>])time\s*\(\s*(NULL|nullptr|0|&)", ANYWHERE,
     [r"^rendezvous/base/real_clock\.cc$", r"^tests/"],
     "take Instant as an argument, or ask rendezvous/base/real_clock.h"),
    ("sleep", r"\b(sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep)\s*\("
     r"|(?<![\w:.])::sleep\s*\(|(?<![\w:.>])sleep\s*\(\s*\d", ANYWHERE, [r"^tests/support/"],
     "wait for a condition; nothing here waits for time to pass"),
    ("sleep in Python (text)", r"\btime\.sleep\s*\(", [r"\.py$"], [r"^tests/support/"],
     "wait for a condition with tests/support/waiting.py"),
    ("shell in Python (text)", r"\bos\.system\s*\(|shell=True", [r"\.py$"], [r"^scripts/lint\.d/"],
     "give subprocess a list"),
    ("shell", r"(?<![\w.>])(std::)?system\s*\(|\bpopen\s*\(", ANYWHERE, [],
     "no text of ours or the user's reaches a shell; use posix_spawn with an argument list"),
    ("random_device", r"\bstd::random_device\b|<random>", ANYWHERE, [r"^tests/"],
     "random numbers come from rendezvous/base/rng.h"),
    ("absl::Mutex", r"\babsl::(Mutex|CondVar)\b", ANYWHERE, [], "use rendezvous/base/mutex.h"),
    ("exception of ours", r"(?<![\w.])throw\b(?!\s*\()", ANYWHERE, [r"^tests/", r"_test\.cc$"],
     "errors are Status values"),
    ("detached thread", r"\.detach\s*\(\s*\)", ANYWHERE, [], "join every thread"),
    ("using namespace in a header", r"^using namespace (?!std::(chrono_)?literals)", [r"\.h$"],
     [], "it leaks into every includer"),

    ("epoch as a generation", r"(?i)(?<!since_)epoch",
     [r"^(rendezvous|launcher|collectives|proto)/", r"^worker_runtime/(core|link)/"], [],
     "the version of a membership is a generation; an epoch is a pass over the data"),
    ("FIXME (text)", r"\bFIXME\b", ANYWHERE, [r"^scripts/lint\.d/"], "fix it, or file an issue"),
    ("TODO without issue (text)", r"\bTODO\b(?!\(#\d+\))", ANYWHERE, [r"^scripts/lint\.d/"],
     "write TODO(#issue), or do it"),
    ("machine path (text)", r"(?<![\w.])/(home|root|work|Users)/\w", ANYWHERE,
     [r"^scripts/lint\.d/"], "paths of one machine don't belong into the project"),
]

LINES_MAX = 400
COLUMNS_MAX = 100

# What CMake defines for single test programs, so that their headers compile alone, too.
DEFINITIONS = ['-DELASTIC_AGENT_TEST_WORKER=""']
