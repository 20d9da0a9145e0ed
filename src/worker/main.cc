// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/unique_fd.h"
#include "channel/control.h"
#include "channel/packet_socket.h"
#include "engine/litert/load.h"
#include "engine/litert/runtime.h"
#include "engine/tensorflow/find_runtime.h"
#include "engine/tensorflow/load.h"
#include "engine/tensorflow/op_list.h"
#include "engine/tensorflow/runtime.h"
#include "worker/environment.h"
#include "worker/process.h"
#include "worker/zygote.h"

namespace tensord::worker {
namespace {

constexpr char kUsage[] =
    "Usage: tensord-worker --zygote | --selftest | --list_ops | --version\n"
    "                      [--tensorflow_library_dir=DIR] [--global_symbols] [--op_library=FILE]\n"
    "                      [--litert [--litert_library_dir=DIR]]\n"
    "Started by the tensord server; not for use by hand, except:\n"
    "  --selftest  finds and opens the TensorFlow runtime, and says what it found\n"
    "  --list_ops  prints the name of every op that the runtime and --op_library know\n"
    "  --version   prints this program's version\n";

struct Options {
  enum class Mode { kNone, kZygote, kSelfTest, kListOps, kVersion } mode = Mode::kNone;
  std::string library_directory;
  bool litert = false;  // Workers run TensorFlow Lite models.
  std::string litert_directory;
  std::vector<std::string> op_libraries;
  engine::SymbolScope scope = engine::SymbolScope::kLocal;
  std::string unknown;
};

Options ParseOptions(int argc, char** argv) {
  constexpr std::string_view kDirectory = "--tensorflow_library_dir=";
  constexpr std::string_view kOpLibrary = "--op_library=";
  constexpr std::string_view kLiteRtDirectory = "--litert_library_dir=";
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--zygote") {
      options.mode = Options::Mode::kZygote;
    } else if (argument == "--selftest") {
      options.mode = Options::Mode::kSelfTest;
    } else if (argument == "--list_ops") {
      options.mode = Options::Mode::kListOps;
    } else if (argument == "--version") {
      options.mode = Options::Mode::kVersion;
    } else if (argument == "--global_symbols") {
      options.scope = engine::SymbolScope::kGlobal;
    } else if (argument == "--litert") {
      options.litert = true;
    } else if (argument.starts_with(kLiteRtDirectory)) {
      options.litert_directory = argument.substr(kLiteRtDirectory.size());
    } else if (argument.starts_with(kDirectory)) {
      options.library_directory = argument.substr(kDirectory.size());
    } else if (argument.starts_with(kOpLibrary)) {
      options.op_libraries.emplace_back(argument.substr(kOpLibrary.size()));
    } else {
      options.unknown = argument;
    }
  }
  return options;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "tensord-worker: %s\n", std::string(base::Message(status)).c_str());
  return 1;
}

// stderr goes to /dev/null while this lives. The runtime's libraries greet on it when they are
// mapped, whatever TF_CPP_MIN_LOG_LEVEL says, and nobody's log is to be spoilt by that; what is
// wrong with them comes back as a status.
class QuietStderr {
 public:
  QuietStderr() : kept_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 4)) {
    const base::UniqueFd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (kept_.valid() && null.valid()) dup2(null.get(), STDERR_FILENO);
  }
  ~QuietStderr() {
    if (kept_.valid()) dup2(kept_.get(), STDERR_FILENO);
  }

 private:
  const base::UniqueFd kept_;
};

absl::StatusOr<engine::Runtime> OpenRuntime(const Options& options) {
  absl::StatusOr<std::string> directory =
      engine::FindRuntime(engine::PlacesOfThisProcess(options.library_directory));
  if (!directory.ok()) return directory.status();
  // After the search, which reads some, and before the runtime, which reads others.
  DropForeignVariables();
  const QuietStderr quiet;
  return engine::Runtime::Open(*directory, options.scope);
}

// The library of TensorFlow Lite models, opened when it is first there: each fork looks for it
// anew until then, so that who installs it need not restart the server.
class LiteRtOfZygote {
 public:
  explicit LiteRtOfZygote(std::string directory)
      : places_(engine::PlacesOf(engine::LiteRtPackage(), std::move(directory))) {}

  Equipment Get() {
    if (!runtime_.ok()) runtime_ = Open();
    // Not the model's fault, and it may come: the version is to be tried again.
    if (!runtime_.ok()) runtime_ = absl::UnavailableError(runtime_.status().message());
    using Opened = absl::StatusOr<const engine::LiteRtRuntime*>;
    const Opened opened = runtime_.ok() ? Opened(&*runtime_) : Opened(runtime_.status());
    return {.directory = runtime_.ok() ? runtime_->directory() : "",
            .make_engine = [opened] { return std::make_unique<engine::LiteRtEngine>(opened); }};
  }

 private:
  absl::StatusOr<engine::LiteRtRuntime> Open() const {
    const absl::StatusOr<std::string> directory = engine::Find(engine::LiteRtPackage(), places_);
    if (!directory.ok()) return directory.status();
    return engine::LiteRtRuntime::Open(*directory);
  }

  const engine::RuntimePlaces places_;
  absl::StatusOr<engine::LiteRtRuntime> runtime_ = absl::NotFoundError("not looked for yet");
};

// A reader of stderr that has stopped must stop no model: what a pipe or a terminal does not take
// at once is lost. By a description of our own, as other programs share the inherited one.
void WaitForNoReader() {
  struct stat log {};
  if (fstat(STDERR_FILENO, &log) != 0 || !(S_ISFIFO(log.st_mode) || isatty(STDERR_FILENO))) return;
  const int own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (own < 0) return;  // Of another user: it stays as it is.
  dup2(own, STDERR_FILENO);
  close(own);
}

int RunZygote(const Options& options) {
  const pid_t supervisor = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  prctl(PR_SET_NAME, "tensord-zygote", 0, 0, 0);
  // As the supervisor has it already (supervisor/spawn.cc), for whoever else starts this program.
  // Workers inherit this.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2}) {
    ::signal(number, SIG_IGN);
  }
  WaitForNoReader();
  const int null = open("/dev/null", O_RDONLY);
  if (null > 0) {
    dup2(null, STDIN_FILENO);
    close(null);
  }
  const channel::PacketSocket front{base::UniqueFd(channel::kZygoteSocketFd)};
  if (options.litert) {
    LiteRtOfZygote litert(options.litert_directory);
    DropForeignVariables();
    return ServeForks(
        front, [&litert] { return litert.Get(); }, supervisor);
  }
  absl::StatusOr<engine::Runtime> runtime = OpenRuntime(options);
  if (!runtime.ok()) return Fail(runtime.status());
  const Equipment equipment{.directory = runtime->directory(), .make_engine = [&runtime] {
                              return std::make_unique<engine::TensorFlowEngine>(&*runtime);
                            }};
  return ServeForks(
      front, [&equipment] { return Equipment(equipment); }, supervisor);
}

int SelfTest(const Options& options) {
  absl::StatusOr<engine::Runtime> runtime = OpenRuntime(options);
  if (!runtime.ok()) return Fail(runtime.status());
  const int threads = CountThreads();
  std::printf("runtime: %s\nthreads after opening it: %d\nTensorFlow version: %s\n",
              runtime->directory().c_str(), threads, runtime->api().TF_Version());
  std::fflush(stdout);
  return threads == 1 ? 0 : 1;
}

// Runs the static initialisers of the operator's own op libraries, as a worker would, but not
// confined: `tensord doctor` is asked by whoever may read them.
int PrintOps(const Options& options) {
  absl::StatusOr<engine::Runtime> runtime = OpenRuntime(options);
  if (!runtime.ok()) return Fail(runtime.status());
  const auto names = engine::ListOps(*runtime, options.op_libraries);
  if (!names.ok()) return Fail(names.status());
  for (const std::string& name : *names) std::printf("%s\n", name.c_str());
  std::fflush(stdout);
  return 0;
}

int Main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  if (!options.unknown.empty() || options.mode == Options::Mode::kNone) {
    std::fprintf(stderr, "%s", kUsage);
    return 2;
  }
  switch (options.mode) {
    case Options::Mode::kZygote:
      return RunZygote(options);
    case Options::Mode::kSelfTest:
      return SelfTest(options);
    case Options::Mode::kListOps:
      return PrintOps(options);
    default:
      std::printf("tensord-worker %s\n", TENSORD_VERSION);
      std::fflush(stdout);
      return 0;
  }
}

}  // namespace
}  // namespace tensord::worker

int main(int argc, char** argv) {
  // Never by exit(): the runtime's static destructors are not made for it.
  _exit(tensord::worker::Main(argc, argv));
}
