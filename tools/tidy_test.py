# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""tidy.py against small sources: each rule must be able to fail, and must not cry wolf."""

import re
from pathlib import Path

import pytest
import tidy

ROOT = Path(__file__).parents[1]
NOTICE = "// SPDX-FileCopyrightText: The tensord authors\n// SPDX-License-Identifier: Apache-2.0\n"


def rules_of(path, text, notice=NOTICE):
    return sorted({f.rule for f in tidy.check_file(path, notice + text)})


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("mutex", "std::mutex mu;"),
        ("mutex", "std::lock_guard<std::mutex> lock(mu);"),
        ("sleep", "std::this_thread::sleep_for(x);"),
        ("clock", "auto t = absl::Now();"),
        ("clock", "auto t = std::chrono::steady_clock::now();"),
        ("new", "auto* p = new Thing();"),
        ("new", "delete p;"),
        ("throw", "throw 1;"),
        ("getenv", 'getenv("HOME");'),
        ("reinterpret-cast", "auto p = reinterpret_cast<Header*>(q);"),
        ("stdout", 'std::cout << "x";'),
        ("abseil", "absl::StrCat(a, b);"),
        ("unsafe-c", "int n = atoi(s);"),
        ("process", "pid_t p = fork();"),
        ("shared-memory", "void* p = mmap(0, n, 0, 0, fd, 0);"),
        ("friend", "  friend class Other;"),
    ],
)
def test_each_ban_finds_its_word(rule, code):
    assert rules_of("src/sched/queue.cc", code) == [rule]


@pytest.mark.parametrize(
    "code",
    [
        "Queue(const Queue&) = delete;",
        "// A new request; throw it away, then sleep().",
        'Log("delete the new friend with std::mutex");',
        "const int renewed = newest + deleted;",
        "SleepFor = 3; int forks = x.fork_count;",
        "return {.wake = time(now)};",
        "bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));",
        "return std::unique_ptr<Queue>(new Queue(n));",
        "  friend bool operator==(const Queue&, const Queue&) = default;",
    ],
)
def test_comments_literals_and_longer_words_are_no_findings(code):
    assert rules_of("src/sched/queue.cc", code) == []


def test_a_ban_knows_the_place_where_the_word_is_right():
    assert rules_of("src/base/mutex.h", "#pragma once\nstd::mutex mu_;") == []
    assert rules_of("src/supervisor/spawn.cc", "pid_t p = fork();") == []


@pytest.mark.parametrize(
    ("path", "target", "rule"),
    [
        ("src/base/text.cc", "tensor/shape.h", ["edges"]),
        ("src/tensor/shape.cc", "base/limits.h", []),
        ("src/worker/loop.cc", "obs/log.h", ["edges"]),
        ("src/fleet/worker_handle.cc", "sched/queue.h", ["edges"]),
        ("src/front/routes.cc", "sched/queue.h", []),
        ("src/supervisor/supervisor.cc", "front/loop.h", ["edges"]),
        ("src/nowhere/x.cc", "base/limits.h", ["edges"]),
    ],
)
def test_includes_go_one_way(path, target, rule):
    assert rules_of(path, f'#include "{target}"\n') == rule


@pytest.mark.parametrize(
    ("path", "target", "rule"),
    [
        ("src/sched/queue.cc", "tensorflow/c/c_api.h", ["foreign"]),
        ("src/engine/tensorflow/session.cc", "tensorflow/c/c_api.h", []),
        ("src/worker/main.cc", "google/protobuf/message.h", ["foreign"]),
        ("src/engine/engine.cc", "spdlog/spdlog.h", ["foreign"]),
        ("src/wire/tfs/codec.cc", "tensorflow/core/framework/tensor.pb.h", []),
        ("src/channel/segment.cc", "mutex", ["foreign"]),
    ],
)
def test_foreign_headers_stay_in_their_folders(path, target, rule):
    assert rules_of(path, f"#include <{target}>\n") == rule


def test_long_files_and_functions_are_found():
    body = "  Step();\n" * 70
    assert rules_of("src/sched/queue.cc", f"void Long(int a) {{\n{body}}}\n") == ["function-size"]
    wrapped = f"void Long(int a,\n          int b) {{\n{body}}}\n"
    assert rules_of("src/sched/queue.cc", wrapped) == ["function-size"]
    short = "void Short() {\n" + "  Step();\n" * 60 + "}\n"
    assert rules_of("src/sched/queue.cc", short * 2) == []
    assert rules_of("src/sched/queue.cc", "int x;\n" * 501) == ["file-size"]
    assert rules_of("src/sched/queue_test.cc", "int x;\n" * 501) == []


def test_a_namespace_or_class_is_no_long_function():
    inner = "void Short() {\n  Step();\n}\n" * 40
    assert rules_of("src/sched/queue.cc", f"namespace tensord::sched {{\n{inner}}}\n") == []
    members = "  void Short() {\n    Step();\n  }\n" * 40
    assert rules_of("src/sched/queue.cc", f"class Queue {{\n{members}}};\n") == []


def test_a_lambda_is_no_function():
    inner = "  loop.Post([this] {\n    Step();\n  });\n  Step();\n"
    functions = "".join(f"void F{i}() {{\n{inner}}}\n" for i in range(30))
    assert rules_of("src/sched/queue.cc", functions) == []


def test_the_notice_and_the_guard_are_missed():
    assert rules_of("src/sched/queue.cc", "int x;\n", notice="") == ["notice"]
    assert rules_of("src/sched/queue.h", "int x;\n") == ["notice"]
    assert rules_of("tools/x.sh", "", notice="#!/bin/bash\n" + NOTICE.replace("//", "#")) == []


@pytest.mark.parametrize(
    "line",
    ["// return x;", "// if (a) {", "// Foo(bar);", "//   x = y + 1;", "// std::string s = t;"],
)
def test_commented_out_code_is_found(line):
    assert rules_of("src/sched/queue.cc", line + "\n") == ["dead-code"]


@pytest.mark.parametrize(
    "line",
    [
        "// Wakes the loop; the caller keeps the lock;",
        "// REQUIRES: Free() > 0.",
        '// Cat("dim ", 3): text, numbers.',
        "// if it is late, nobody waits (see Drain).",
    ],
)
def test_prose_is_not_commented_out_code(line):
    assert rules_of("src/sched/queue.cc", line + "\n") == []


def test_commented_out_build_lines_are_found():
    notice = NOTICE.replace("//", "#")
    assert rules_of("src/x/CMakeLists.txt", "# add_test(NAME a)\n", notice) == ["dead-code"]
    assert rules_of("src/x/CMakeLists.txt", "# Tests come last.\n", notice) == []


def test_unfinished_marks_name_an_issue():
    assert rules_of("src/sched/queue.cc", "// TO" + "DO: later\n") == ["unfinished"]
    assert rules_of("src/sched/queue.cc", "// TO" + "DO(#12): later\n") == []
    assert rules_of("src/sched/queue.cc", "// FIX" + "ME\n") == ["unfinished"]


def test_an_unlisted_source_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "src/sched"
    (folder / "testing").mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text("FILES queue.h queue.cc testing/fake.h\n")
    (tmp_path / "src/cli").mkdir()
    (tmp_path / "src/cli/CMakeLists.txt").write_text("main.cc ../sched/testing/shared.cc\n")
    names = ["queue.h", "queue.cc", "testing/fake.h", "my_queue.cc", "testing/other.h"]
    names.append("testing/shared.cc")
    paths = ["src/sched/CMakeLists.txt", "src/cli/CMakeLists.txt"] + [
        f"src/sched/{n}" for n in names
    ]
    found = [f.path for f in tidy.check_listed(paths)]
    assert found == ["src/sched/my_queue.cc", "src/sched/testing/other.h"]


def test_bytes_a_worker_can_change_have_one_reader():
    one = {"src/channel/segment.cc": "void CopyFromShared(Span to, Span from) {\n}\n"}
    assert not list(tidy.check_shared_reader(one))
    two = {**one, "src/fleet/copy.cc": "void CopyFromShared(int a) {\n}\n"}
    assert [f.path for f in tidy.check_shared_reader(two)] == ["src/fleet/copy.cc"]


def test_the_allow_list_excuses_as_many_as_it_says_and_no_more():
    found = [tidy.Finding("new", "src/a.cc", n, "") for n in (1, 2)]
    assert tidy.excuse(found, {("new", "src/a.cc"): 2}) == []
    assert tidy.excuse(found, {("new", "src/a.cc"): 1}) == found
    (shrink,) = tidy.excuse(found, {("new", "src/a.cc"): 3})
    assert "now needs 2 of 3" in shrink.words


def test_the_tree_in_style_md_names_files_that_exist():
    text = (ROOT / "STYLE.md").read_text()
    tree = text[text.index("\nsrc/\n") : text.index("```", text.index("\nsrc/\n"))]
    named = [
        (folder, name)
        for folder, rest in re.findall(r"^  ([a-z]+/)  +(.*)$", tree, re.M)
        for name in re.findall(r"[a-z0-9_]+(?:\.h|\.cc|/)(?= |$)", rest)
    ]
    assert len(named) > 50
    assert [n for n in named if not (ROOT / "src" / n[0] / n[1]).exists()] == []
