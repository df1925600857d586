"""The lint itself: each rule must catch what it is for, and leave alone what it is not for."""

import json
import os
import pathlib
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "scripts", "lint.d")]
# pylint: disable=wrong-import-position
import lint
import runner
import tidy

# (path, text, words of the one problem; None: none)
CASES = [
    ("rendezvous/core/a.cc", "std::mutex m;", "thread in a pure core"),
    ("rendezvous/core/a.cc", "#include <thread>", "thread in a pure core"),
    ("launcher/core/a.cc", "std::unordered_map<int, int> m;", "hash order in a pure core"),
    ("launcher/core/a.cc", "// an unordered_map would do\nstd::map<int, int> m;", None),
    ("worker_runtime/core/a.cc", "#include <fstream>", "I/O in a pure core"),
    ("collectives/schedule/a.cc", "std::mt19937 r;", "randomness in a pure core"),
    ("rendezvous/core/a.cc", 'LogInfo("x");', "logging in a pure core"),
    ("launcher/core/a.cc", "Log(Severity::kInfo, text);", "logging in a pure core"),
    ("launcher/core/a.cc", "WriteLog(severity, text);", "logging in a pure core"),
    ("rendezvous/core/a.cc", "Say(Severity::kInfo, Log2(x)); catalog(x); std::log(x);", None),
    ("launcher/agent/a.cc", 'LogInfo("x");', None),
    ("worker_runtime/core/a.cc", "std::chrono::duration<double> d;",
     "floating-point time in a pure core"),
    ("launcher/cli/a.cc", "std::thread t;", None),
    ("launcher/cli/a.cc", "auto t = std::chrono::steady_clock::now();",
     "clock outside real_clock.cc"),
    ("launcher/cli/a.cc", "clock_gettime(CLOCK_BOOTTIME, &t);", "clock outside real_clock.cc"),
    ("rendezvous/base/real_clock.cc", "clock_gettime(CLOCK_BOOTTIME, &t);", None),
    ("launcher/cli/a.cc", "std::this_thread::sleep_for(1ms);", "sleep"),
    ("launcher/cli/a.cc", 'Say("sleep_for(x)");', None),
    ("tests/support/a.cc", "std::this_thread::sleep_for(1ms);", None),
    ("tests/integration/a.py", "time.sleep(1)", "sleep in Python"),
    ("tests/integration/a.py", "subprocess.run(line, shell=" + "True)", "shell in Python"),
    ("launcher/cli/a.cc", 'system("rm -rf x");', "shell"),
    ("launcher/cli/a.cc", "file.system(x); operating_system(y);", None),
    ("launcher/cli/a.cc", "std::random_device d;", "random_device"),
    ("rendezvous/server/a.cc", "absl::Mutex m;", "absl::Mutex"),
    ("launcher/cli/a.cc", "throw std::bad_alloc();", "exception of ours"),
    ("launcher/cli/a_test.cc", "throw std::bad_alloc();", None),
    ("launcher/cli/a.cc", "thread.detach();", "detached thread"),
    ("launcher/cli/a.h", "#pragma once\nusing namespace std;", "using namespace in a header"),
    ("launcher/cli/a.cc", "using namespace std::chrono_literals;", None),
    ("rendezvous/server/a.cc", "uint32_t epoch = 0;", "epoch as a generation"),
    ("rendezvous/base/time.h", "#pragma once\nt.time_since_epoch();", None),
    ("worker_runtime/elastic_sampler.h", "#pragma once\nuint64_t epoch;  // a pass", None),
    ("launcher/cli/a.cc", "// FIX" + "ME", "FIX" + "ME"),
    ("launcher/cli/a.cc", "// TO" + "DO later", "TO" + "DO without issue"),
    ("launcher/cli/a.cc", "// TO" + "DO(#12) later", None),
    ("README.md", "cd /ho" + "me/somebody", "machine path"),
    ("launcher/cli/a.h", "int x;", "#pragma once"),
    ("launcher/cli/a.cc", "int x;\n" * 401, "lines; the limit"),
    ("tests/support/a.py", "x = 1" + " " * 96, "columns; the limit"),
    ("tests/support/a.py", "x = 1" + " " * 95, None),
    ("somewhere/a.cc", "int x;", "no layer"),
    ("worker_runtime/a.cc", '#include "proto/elastic/v1/types.pb.h"', "may not include"),
    ("rendezvous/core/a.cc", '#include "rendezvous/server/server.h"', "may not include"),
    ("rendezvous/core/a.cc", '#include "rendezvous/base/ids.h"', None),
    ("collectives/a.cc", '#include "proto/local/frames.h"', "may not include"),
    ("worker_runtime/a.cc", "#include <grpcpp/grpcpp.h>", "stay out of here"),
    ("worker_runtime/elastic_a.h", "#pragma once\n\nint Rank();\n", "no comment says"),
    ("worker_runtime/elastic_a.h", "#pragma once\n\n// Of this process.\nint Rank();\n"
     "int Size();\n", None),
    ("worker_runtime/elastic_a.h", "#pragma once\n\n// A.\nclass A {\n public:\n  int b();\n"
     "};\n", "no comment says"),
    ("worker_runtime/elastic_a.h", "#pragma once\n\n// A.\nclass A {\n public:\n"
     "  A() = default;\n\n  int b();  // B\n\n private:\n  int c_;\n};\n", None),
    ("worker_runtime/session.h", "#pragma once\n\nint Rank();\n", None),
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


def ACircleOfLayersIsFoundWhateverItsLength(_):
    layers = [("a", []), ("b", ["a"]), ("c", ["b/deep"]), ("b/deep", ["c"]), ("tests", [""])]
    assert len(list(lint.layer_cycles(layers))) == 1, list(lint.layer_cycles(layers))
    assert not list(lint.layer_cycles(layers[:3]))
    assert not list(lint.layer_cycles(lint.rules.LAYERS))


def EachBannedTextHasACase(_):
    """So that a rule that catches nothing, or no longer what it is named after, shows above."""
    wanted = {what.replace(" (text)", "") for what, *_ in lint.rules.BANNED}
    missing = wanted - {words for _, _, words in CASES}
    assert not missing, f"no case in CASES for {sorted(missing)}"


def FilesThatAreTidiedTogetherAreReportedAsTheyAreAlone(context):
    """One has a problem, two have a name of their own that is the same: only the first is told."""
    root = context.new_folder("root")
    (root / "collectives").mkdir()  # what HeaderFilterRegex of .clang-tidy lets through
    shutil.copy(lint.ROOT / ".clang-tidy", root)
    texts = {"bad.cc": "int Bad(int x) {\n  if (x > 1)\n    return 1;\n  return x;\n}\n",
             "one.cc": "namespace {\nint Own() { return 1; }\n}  // namespace\n"
                       "int One() { return Own(); }\n",
             "other.cc": "namespace {\nint Own() { return 2; }\n}  // namespace\n"
                         "int Other() { return Own(); }\n",
             "good.cc": "int Good() { return 4; }\n"}
    commands = []
    for name, text in texts.items():
        (root / "collectives" / name).write_text(text)
        path = str(root / "collectives" / name)
        commands.append({"directory": str(root), "file": path,
                         "command": f"/usr/bin/c++ -std=c++20 -o {name}.o -c {path}"})
    (root / "compile_commands.json").write_text(json.dumps(commands))
    passed = []
    units = [pathlib.Path("collectives") / name for name in sorted(texts)]
    found = list(tidy.Tidy(root, root, passed.append, None).problems(units))
    assert found and all("bad.cc:2:" in line and "braces" in line for line in found), found
    assert sorted(path.name for path in passed) == ["good.cc", "one.cc", "other.cc"], passed


def OnlyAHeaderThatItsOwnSourceIncludesFirstIsLeftOutOfTheHeaderCheck(_):
    header = pathlib.Path("rendezvous/base/hash.h")
    source = header.with_suffix(".cc")
    known = f'"file": "{lint.ROOT / source}"'
    texts = {source: f'#include "{header}"\n#include <string>\n'}
    real_read = lint.sources.read
    lint.sources.read = texts.get
    try:
        assert lint.proved_by_build(header, known)
        assert not lint.proved_by_build(header, ""), "its source is not built"
        texts[source] = f'#include <string>\n#include "{header}"\n'
        assert not lint.proved_by_build(header, known), "something stands before it"
        assert not lint.proved_by_build(pathlib.Path("rendezvous/base/mutex.h"), known)
    finally:
        lint.sources.read = real_read


if __name__ == "__main__":
    runner.main(globals())
