// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// An op library for the end-to-end tests: what a hostile, broken or merely slow kernel does to the
// process that runs it, and what such a kernel can see of the machine. make_models.py builds it
// against the headers of the installed TensorFlow; nothing of it is part of the server.

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

extern char** environ;

namespace {

using Argument = const std::string&;

std::string Outcome(bool done) { return done ? "done" : std::strerror(errno); }

// The names in a directory, or why it cannot be listed.
std::vector<std::string> List(Argument path) {
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) return {std::string("! ") + std::strerror(errno)};
  std::vector<std::string> names;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names.push_back(entry->d_name);
  }
  closedir(directory);
  return names;
}

std::string Abort(Argument) { abort(); }

std::string Segv(Argument) {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
  return "still here";
}

std::string Exit(Argument code) { _exit(std::atoi(code.c_str())); }

std::string Kill(Argument signal) {
  return Outcome(kill(getpid(), std::atoi(signal.c_str())) == 0);
}

std::string Sleep(Argument milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(milliseconds.c_str())));
  return "done";
}

std::string Spin(Argument) {
  for (volatile bool forever = true; forever;) {
  }
  return "never";
}

std::string Pid(Argument) { return std::to_string(getpid()); }

std::string Ids(Argument) { return std::to_string(getuid()) + " " + std::to_string(getgid()); }

std::string Threads(Argument) { return std::to_string(List("/proc/self/task").size()); }

// Each open descriptor and what it leads to, one a line.
std::string Descriptors(Argument) {
  std::string lines;
  for (const std::string& name : List("/proc/self/fd")) {
    char target[256] = {};
    if (readlink(("/proc/self/fd/" + name).c_str(), target, sizeof(target) - 1) < 0) {
      std::strncpy(target, std::strerror(errno), sizeof(target) - 1);
    }
    lines += name + " " + target + "\n";
  }
  return lines;
}

std::string ListPath(Argument path) {
  std::string lines;
  for (const std::string& name : List(path)) lines += name + "\n";
  return lines;
}

std::string OpenToRead(Argument path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::string outcome = Outcome(fd >= 0);
  if (fd >= 0) close(fd);
  return outcome;
}

std::string OpenToWrite(Argument path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::string outcome = Outcome(fd >= 0);
  if (fd >= 0) close(fd);
  return outcome;
}

std::string Socket(Argument family) {
  const int fd = socket(family == "unix" ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
  const std::string outcome = Outcome(fd >= 0);
  if (fd >= 0) close(fd);
  return outcome;
}

std::string Fork(Argument) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child > 0) waitpid(child, nullptr, 0);
  return Outcome(child > 0);
}

std::string Exec(Argument program) {
  execl(program.c_str(), program.c_str(), static_cast<char*>(nullptr));
  return std::strerror(errno);
}

// Signals the process of that number, gently: 0 asks only whether one may.
std::string Signal(Argument pid) { return Outcome(kill(std::atoi(pid.c_str()), 0) == 0); }

// Any system call: its number and up to four numbers for it.
std::string Call(Argument numbers) {
  std::istringstream in(numbers);
  long call[5] = {};
  for (long& number : call) in >> number;
  return Outcome(syscall(call[0], call[1], call[2], call[3], call[4]) >= 0);
}

// The same, after it has tried to hear nothing of what its sandbox says of that.
std::string CallDeaf(Argument numbers) {
  signal(SIGSYS, SIG_IGN);
  return Call(numbers);
}

// Opens the memory that it shares with the server anew, to write.
std::string ReopenMemory(Argument) {
  std::ifstream maps("/proc/self/maps");
  if (!maps) return std::strerror(errno);
  std::string outcome = "none found";
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:") == std::string::npos) continue;
    const std::string path = "/proc/self/map_files/" + line.substr(0, line.find(' '));
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd >= 0) return "done";
    outcome = std::strerror(errno);
  }
  return outcome;
}

std::string Thread(Argument) {
  bool ran = false;
  std::thread([&ran] { ran = true; }).join();
  return ran ? "done" : "did not run";
}

std::string Environment(Argument) {
  std::string lines;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    lines += std::string(*entry) + "\n";
  }
  return lines;
}

// Takes and touches that many megabytes, and keeps them.
std::string Allocate(Argument megabytes) {
  const size_t bytes = static_cast<size_t>(std::atoll(megabytes.c_str())) << 20;
  char* memory = static_cast<char*>(malloc(bytes));
  if (memory == nullptr) return std::strerror(ENOMEM);
  std::memset(memory, 1, bytes);
  return "done";
}

// Lines to stdout and stderr, as a chatty library would write them.
std::string Print(Argument lines) {
  for (int i = 0; i < std::atoi(lines.c_str()); ++i) {
    std::printf("probe says %d on stdout\n", i);
    std::fprintf(stderr, "probe says %d on stderr\n", i);
  }
  std::fflush(stdout);
  return "done";
}

const std::map<std::string, std::string (*)(Argument)>& Actions() {
  static const auto* actions =
      new std::map<std::string, std::string (*)(Argument)>{{"abort", Abort},
                                                           {"segv", Segv},
                                                           {"exit", Exit},
                                                           {"kill", Kill},
                                                           {"sleep", Sleep},
                                                           {"spin", Spin},
                                                           {"pid", Pid},
                                                           {"ids", Ids},
                                                           {"threads", Threads},
                                                           {"fds", Descriptors},
                                                           {"list", ListPath},
                                                           {"read", OpenToRead},
                                                           {"write", OpenToWrite},
                                                           {"socket", Socket},
                                                           {"fork", Fork},
                                                           {"exec", Exec},
                                                           {"signal", Signal},
                                                           {"environ", Environment},
                                                           {"allocate", Allocate},
                                                           {"print", Print},
                                                           {"call", Call},
                                                           {"deaf", CallDeaf},
                                                           {"memory", ReopenMemory},
                                                           {"thread", Thread}};
  return *actions;
}

// Row by row: does what `what` says, with that row's argument. An unknown word, as in a synthetic
// warm-up, is answered with itself.
class ProbeOp : public tensorflow::OpKernel {
 public:
  explicit ProbeOp(tensorflow::OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(tensorflow::OpKernelContext* context) override {
    const auto what = context->input(0).flat<tensorflow::tstring>();
    const auto argument = context->input(1).flat<tensorflow::tstring>();
    OP_REQUIRES(context, what.size() == argument.size(),
                absl::InvalidArgumentError("what and argument differ in size"));
    tensorflow::Tensor* answer = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &answer));
    for (int64_t i = 0; i < what.size(); ++i) {
      const auto action = Actions().find(std::string(what(i)));
      answer->flat<tensorflow::tstring>()(i) = action == Actions().end()
                                                   ? std::string(what(i))
                                                   : action->second(std::string(argument(i)));
    }
  }
};

REGISTER_OP("TensordProbe")
    .Input("what: string")
    .Input("argument: string")
    .Output("answer: string")
    .SetIsStateful()
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* context) {
      context->set_output(0, context->input(0));
      return absl::OkStatus();
    });
REGISTER_KERNEL_BUILDER(Name("TensordProbe").Device(tensorflow::DEVICE_CPU), ProbeOp);

}  // namespace
