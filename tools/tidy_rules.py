# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""The tables that tidy.py checks: what is banned, who may include whom, how long things may be."""

from dataclasses import dataclass

FUNCTION_LINES_MAX = 70
TEXT_SUFFIXES = (".cc", ".h", ".py", ".sh", ".cmake", ".proto", ".go", "CMakeLists.txt")

# Which folders of src/ each may include. Written out in full, so that a new edge is a decision.
_GROUND = {"base"}
_PURE = {"base", "tensor"}
_FRONT_SIDE = {"base", "tensor", "obs", "loop", "config", "channel"}
EDGES = {
    "base": set(),
    "tensor": _GROUND,
    "obs": _GROUND,
    "loop": _GROUND,
    "tls": _GROUND,
    "config": {"base", "tensor", "obs", "loop", "tls"},
    "channel": _PURE,
    "wire": _PURE,
    "engine": {"base", "tensor", "channel"},
    "worker": {"base", "tensor", "channel", "engine"},
    "supervisor": {"base", "obs", "loop", "channel", "config"},
    # Training: nothing of serving, and nothing of serving knows it.
    "train": {"base", "obs", "loop", "config"},
    "fleet": _FRONT_SIDE | {"engine"},
    "models": _FRONT_SIDE | {"engine", "wire", "fleet"},
    "sched": _FRONT_SIDE | {"engine", "wire", "fleet", "models"},
    "front": _FRONT_SIDE | {"engine", "wire", "fleet", "models", "sched", "tls"},
    # serve takes the list of sockets that the supervisor left open.
    "serve": _FRONT_SIDE
    | {"engine", "wire", "fleet", "models", "sched", "front", "supervisor", "tls"},
    # What `tensord check` finds without starting a server.
    "check": _FRONT_SIDE | {"engine", "models", "sched", "serve", "supervisor"},
    "bench": {"base", "tensor", "loop", "channel", "wire", "engine", "fleet"},
    # Looks at the machine and at models without serving; of sched it asks what would be batched.
    "doctor": {"base", "tensor", "config", "engine", "models", "sched"},
    "cli": _FRONT_SIDE
    | {"engine", "wire", "check", "doctor", "serve", "supervisor", "bench", "train"},
}
# (folder, used) that a test may add: it plays the other side of what its folder talks to.
TEST_EDGES = {("supervisor", "serve")}

# Foreign headers, by regular expression, and the folders they stay in.
FOREIGN = {
    r"tensorflow/(c|cc|core)/.*\.h$(?<!\.pb\.h)": ["src/engine/tensorflow/"],
    r"nghttp2/": ["src/front/", "src/bench/"],
    r"openssl/": ["src/tls/", "src/front/tls_", "src/bench/secure", "src/train/secure"],
    r"boost/": ["src/front/"],
    r"simdjson": ["src/wire/"],
    r"fast_float/": ["src/wire/"],
    r"seccomp\.h": ["src/worker/", "src/fleet/death.cc"],
    r"linux/(seccomp|landlock|filter|audit)\.h": ["src/worker/"],
    r"dlfcn\.h": ["src/engine/", "src/worker/", "src/doctor/nvml/"],
    r"spdlog/": ["src/obs/"],
    r"fmt/": ["src/obs/", "src/bench/"],
    r"prometheus/": ["src/obs/"],
    r"CLI/": ["src/config/", "src/cli/", "src/front/testing/"],
    r"google/protobuf/|.*\.pb\.h$": [
        "src/wire/",
        "src/config/",
        "src/front/",
        "src/serve/",
        "src/bench/",
        "src/cli/",
        "src/models/",
        "src/check/",
        "src/doctor/",
    ],
    r"grpc": ["tests/clients/"],
    r"(mutex|condition_variable|shared_mutex|semaphore|future)$": ["src/base/mutex.h"],
}

# Sources that no CMakeLists.txt builds, and why: libraries that test models load into a worker.
UNLISTED = ["tests/models/"]


@dataclass(frozen=True)
class Ban:
    rule: str
    pattern: str
    instead: str
    places: tuple = ()  # Folders and files where it is right.
    spare_tests: bool = False


BANS = [
    Ban(
        "mutex",
        r"std::(recursive_|shared_|timed_)?mutex\b|std::(lock_guard|unique_lock|scoped_lock"
        r"|condition_variable)\b|absl::Mutex|pthread_mutex_",
        "use base::Mutex and base::MutexLock (base/mutex.h), which thread-safety analysis reads",
        ("src/base/mutex.h",),
    ),
    Ban(
        "sleep",
        r"\bsleep_for\b|\bsleep_until\b|\busleep\(|\bnanosleep\(|absl::SleepFor|\bsleep\(",
        "nothing waits by sleeping: use a timer of the loop (loop/timers.h)",
        ("src/supervisor/testing/fake_zygote.cc",),  # A worker that does nothing.
    ),
    Ban(
        "clock",
        r"absl::Now\(|_clock::now\(|\bclock_gettime\(|\bgettimeofday\(|\btime\((nullptr|NULL|0)\)"
        r"|absl::GetCurrentTimeNanos",
        "time is an argument: take a base::Clock (base/clock.h)",
        ("src/base/clock.",),
    ),
    Ban(
        "new",
        r"(?<!operator )(?<!WrapUnique\()(?<!>\()(?<!Made\()\bnew (?!\()[A-Za-z_:]"
        r"|(?<!= )(?<!operator )\bdelete\b(?! *[;,)])|\b(malloc|calloc|realloc|free)\(",
        "use std::make_unique (a private constructor: std::unique_ptr<T>(new T)) or a container",
        ("src/front/body_buffer.",),  # realloc moves large blocks by their page tables.
        spare_tests=True,
    ),
    Ban("throw", r"\bthrow\b", "return absl::Status; exceptions of ours do not exist"),
    Ban(
        "getenv",
        r"\b(secure_)?getenv\(|\bsetenv\(|\bputenv\(|\bunsetenv\(",
        "settings come through config/; the environment is read where the runtime is looked for",
        ("src/engine/find_libraries.cc", "src/worker/sandbox.cc"),
        spare_tests=True,
    ),
    Ban(
        "reinterpret-cast",
        r"\breinterpret_cast<(?!(const )?(unsigned char|char|std::byte|uint8_t|Bytef|sockaddr\w*)"
        r"[*&]>)",
        "use std::bit_cast or memcpy (a view of plain bytes as characters is fine)",
        spare_tests=True,
    ),
    Ban(
        "stdout",
        r"std::(cout|cerr|clog)\b|\bprintf\(|\bputs\(|\bstd::println?\b|\bperror\(",
        "use obs/log.h (worker side: fprintf(stderr, …))",
        ("src/cli/", "src/config/", "src/worker/main.cc"),
        spare_tests=True,
    ),
    Ban(
        "fprintf",
        r"\bfprintf\(",
        "use obs/log.h; only the worker side, which links no logger, writes to stderr itself",
        (
            "src/worker/",
            "src/engine/",
            "src/channel/",
            "src/cli/",
            "src/base/check.cc",
            "src/supervisor/spawn.cc",
        ),
        spare_tests=True,
    ),
    Ban(
        "abseil",
        r"absl::(StrCat|StrAppend|StrFormat|string_view)\b|absl::(flat|node)_hash_",
        "use base/text.h and the standard containers: Debian's Abseil has its own string_view",
    ),
    Ban(
        "unsafe-c",
        r"\b(strcpy|strcat|sprintf|vsprintf|strtok|gets|atoi|atol|atof|rand|srand|alloca)\(",
        "unbounded or unchecked: use the C++ counterpart (std::from_chars, std::string, <random>)",
    ),
    Ban(
        "process",
        r"\b(system|popen|v?fork|execv?p?e?|execl[pe]?|posix_spawnp?)\(",
        "only the supervisor, the zygote, train, bench and cli start processes",
        ("src/supervisor/", "src/worker/", "src/train/", "src/bench/", "src/cli/"),
        spare_tests=True,
    ),
    Ban(
        "shared-memory",
        r"\b(mmap|mmap64|memfd_create|shm_open)\(",
        "only channel/ touches shared memory: take a Segment",
        ("src/channel/", "src/base/recycled_block.cc"),
        spare_tests=True,
    ),
    Ban("using-namespace", r"\busing namespace\b", "name what you use"),
    Ban(
        "friend",
        r"^\s*friend\b(?!.*\boperator)",
        "no friends: make it a member, or make the need public",
    ),
    Ban("regex", r"std::regex\b", "slow and recursive on input: write the few lines of parsing"),
    Ban("goto", r"\bgoto\b", "return early"),
]


def allowed_folders(folder):
    return EDGES[folder]


def named(folder):
    names = [f for f in EDGES if f in EDGES[folder]]
    return ", ".join(names) if names else "no other folder"
