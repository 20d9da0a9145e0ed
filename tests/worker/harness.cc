// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/worker/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/clock.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "engine/signature_def.h"
#include "engine/tensorflow/find_runtime.h"
#include "tensor/string_layout.h"

namespace tensord::testing {
namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

Places FindPlaces() {
  const std::string root = TENSORD_SOURCE_DIR;
  Places places;
  places.worker = Environment("TENSORD_WORKER", TENSORD_WORKER_BINARY);
  places.models = Environment("TENSORD_TEST_MODELS", root + "/build/test_models");
  places.fixtures =
      Environment("TENSORD_FIXTURES", root + "/../shared/fixtures") + "/tensorflow-serving";
  engine::RuntimePlaces search;
  search.environment_directory = Environment("TENSORD_TENSORFLOW_DIR", "");
  search.virtual_env = root + "/.venv";
  const absl::StatusOr<std::string> runtime = engine::FindRuntime(search);
  if (!runtime.ok()) {
    places.why = base::Cat("no TensorFlow in ", root, "/.venv: ./run build makes it");
  } else {
    places.runtime = *runtime;
  }
  if (!fs::exists(places.models)) {
    places.why =
        base::Cat("no test models in ", places.models, ": tests/models/make_models.py makes them");
    places.models.clear();
  }
  return places;
}

template <size_t n>
void CloseAll(int (&fds)[n]) {
  for (const int fd : fds) close(fd);
}

channel::ControlRecord ForkRecord(uint64_t number) {
  channel::ControlRecord record;
  record.kind = channel::ControlKind::kFork;
  record.request = number;
  record.incarnation = 1000 + number;
  return record;
}

// Until `fd` can be read.
absl::Status AwaitReadable(int fd, absl::Duration patience) {
  const absl::Time until = base::MonotonicClock().Now() + patience;
  while (true) {
    const absl::Duration left = until - base::MonotonicClock().Now();
    pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&polled, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
    if (ready > 0) return absl::OkStatus();
    if (ready == 0 || left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("nothing came from the worker in time");
    }
  }
}

// From now on those calls fail with EPERM.
void RefuseCalls(const std::vector<RefusedCall>& calls) {
  std::vector<sock_filter> program;
  for (const RefusedCall& call : calls) {
    const auto number = static_cast<uint32_t>(call.number);
    const bool any = !call.first_argument.has_value();
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    // Of another number: past the rest of this call's part.
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, static_cast<uint8_t>(any ? 1 : 3)));
    if (!any) {
      program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])));
      program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, *call.first_argument, 0, 1));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()),
                          .filter = program.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) _exit(126);
}

// In the child: exec's the zygote with its socket at descriptor 3.
[[noreturn]] void ExecZygote(int socket, const std::vector<std::string>& arguments,
                             const TestZygote::Options& options) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (const std::string& entry : options.environment) {
    envp.push_back(const_cast<char*>(entry.c_str()));
  }
  envp.push_back(nullptr);
  if (socket == channel::kZygoteSocketFd) {
    fcntl(socket, F_SETFD, 0);
  } else {
    dup2(socket, channel::kZygoteSocketFd);
  }
  if (options.user != 0 && (setresgid(options.user, options.user, options.user) != 0 ||
                            setresuid(options.user, options.user, options.user) != 0)) {
    _exit(125);
  }
  if (!options.refused_calls.empty()) RefuseCalls(options.refused_calls);
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

}  // namespace

const Places& ThePlaces() {
  static const Places places = FindPlaces();
  return places;
}

absl::StatusOr<std::unique_ptr<TestZygote>> TestZygote::Start(Options options) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  ASSIGN_OR_RETURN(auto ends, channel::PacketSocket::Pair());
  std::vector<std::string> arguments = {
      ThePlaces().worker, "--zygote", base::Cat("--tensorflow_library_dir=", ThePlaces().runtime)};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  options.environment.emplace_back("TF_CPP_MIN_LOG_LEVEL=1");
  const pid_t pid = fork();
  if (pid == 0) ExecZygote(ends.second.fd(), arguments, options);
  if (pid < 0) return absl::InternalError("fork failed");
  return std::unique_ptr<TestZygote>(new TestZygote(pid, std::move(ends.first)));
}

TestZygote::~TestZygote() {
  if (socket_.has_value()) Close();
}

std::optional<Ended> TestZygote::Close() {
  socket_.reset();
  return WaitFor(pid_);
}

absl::StatusOr<std::unique_ptr<TestWorker>> TestZygote::Fork(uint64_t response_bytes) {
  ASSIGN_OR_RETURN(auto ends, channel::PacketSocket::Pair());
  ASSIGN_OR_RETURN(auto request, channel::RequestSegment::Create(limits::kRequestSegmentBytes));
  ASSIGN_OR_RETURN(auto response, channel::ResponseSegment::Create(response_bytes));
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return absl::InternalError("pipe2 failed");
  fcntl(out[0], F_SETPIPE_SZ, 1 << 20);  // What a chatty worker writes must not block it.
  base::UniqueFd write_end(out[1]);
  const channel::ControlRecord record = ForkRecord(next_++);
  std::string bytes(sizeof(record), '\0');
  std::memcpy(bytes.data(), &record, sizeof(record));
  const absl::Time begun = base::MonotonicClock().Now();
  RETURN_IF_ERROR(socket_->Send(
      bytes, {ends.second.fd(), request.fd(), response.fd(), write_end.get(), write_end.get()}));
  ends.second = channel::PacketSocket(base::UniqueFd());
  write_end.Reset();
  RETURN_IF_ERROR(AwaitReadable(ends.first.fd(), kPatience));
  const absl::Duration start = base::MonotonicClock().Now() - begun;
  RETURN_IF_ERROR(AwaitReadable(socket_->fd(), kPatience));
  ASSIGN_OR_RETURN(const channel::Packet packet, socket_->Receive(sizeof(record), 0));
  channel::ControlRecord answer;
  std::memcpy(&answer, packet.bytes.data(), sizeof(answer));
  if (answer.kind != channel::ControlKind::kForked || answer.request != record.request) {
    return absl::InternalError(base::Cat("the zygote could not fork: error ", answer.error));
  }
  auto worker = std::make_unique<TestWorker>(
      answer.pid, start,
      TestWorker::Parts{record.incarnation, std::move(ends.first), std::move(request),
                        std::move(response), base::UniqueFd(out[0])});
  ASSIGN_OR_RETURN(const channel::ToFront hello, worker->Receive());
  if (!std::holds_alternative<channel::HelloRecord>(hello) ||
      std::get<channel::HelloRecord>(hello).pid != answer.pid) {
    return absl::InternalError("no hello of the forked pid");
  }
  return worker;
}

TestWorker::TestWorker(pid_t pid, absl::Duration start, Parts parts)
    : pid_(pid),
      start_(start),
      incarnation_(parts.incarnation),
      socket_(std::move(parts.socket)),
      request_(std::move(parts.request)),
      response_(std::move(parts.response)),
      out_(std::move(parts.out)) {}

TestWorker::~TestWorker() {
  if (waited_) return;
  kill(pid_, SIGKILL);
  WaitFor(pid_);
}

channel::LoadRecord TestWorker::LoadOf(std::string directory) {
  channel::LoadRecord record;
  record.model = "test";
  record.version = 1;
  record.directory = std::move(directory);
  record.tags = {"serve"};
  record.session_config =
      std::string("\x10\x02\x28\x01", 4);  // Two intra-op threads, one inter-op.
  record.executors = 2;
  record.warm_up_rows = {1};
  record.sandbox_user = getuid() == 0 ? 61234 : 0;
  return record;
}

absl::Status TestWorker::Load(const channel::LoadRecord& record) {
  RETURN_IF_ERROR(Send(record));
  ASSIGN_OR_RETURN(const channel::ToFront answer, Receive());
  if (const auto* failed = std::get_if<channel::LoadFailedRecord>(&answer)) return failed->status;
  const auto* loaded = std::get_if<channel::LoadedRecord>(&answer);
  if (loaded == nullptr) return absl::InternalError("a record that answers no load");
  std::string bytes(loaded->info_bytes, '\0');
  RETURN_IF_ERROR(channel::CopyFromShared(
      std::as_writable_bytes(std::span(bytes.data(), bytes.size())), response_, 0));
  ASSIGN_OR_RETURN(info_, engine::ParseModelInfo(bytes));
  ASSIGN_OR_RETURN(signatures_, engine::ParseSignatureDefs(info_.signature_def_map,
                                                           engine::kSignatureDefMapField));
  return absl::OkStatus();
}

absl::StatusOr<std::string> TestWorker::Seal() {
  RETURN_IF_ERROR(Send(channel::SealRecord{}));
  ASSIGN_OR_RETURN(const channel::ToFront answer, Receive());
  const auto* sealed = std::get_if<channel::SealedRecord>(&answer);
  if (sealed == nullptr) return absl::InternalError("a record that answers no seal");
  RETURN_IF_ERROR(sealed->status);
  return sealed->report;
}

channel::Run TestWorker::Prepare(std::string_view signature,
                                 const std::vector<const tensor::Tensor*>& inputs,
                                 uint64_t offset) {
  channel::Run run;
  run.id = next_++;
  run.signature = static_cast<uint32_t>(tensor::SignatureIndex(signatures_, signature));
  for (const tensor::Tensor* input : inputs) {
    const auto from = input->buffer.bytes();
    if (!from.empty()) {
      std::memcpy(request_.Bytes(offset, from.size()).data(), from.data(), from.size());
    }
    run.inputs.push_back(
        {.dtype = input->dtype, .shape = input->shape, .offset = offset, .bytes = from.size()});
    offset = (offset + from.size() + 63) / 64 * 64;
  }
  run.response_bytes = response_.size();
  return run;
}

absl::StatusOr<TestWorker::Answer> TestWorker::Run(std::string_view signature,
                                                   const std::vector<const tensor::Tensor*>& inputs,
                                                   std::optional<uint64_t> response_bytes) {
  channel::Run run = Prepare(signature, inputs);
  if (response_bytes.has_value()) run.response_bytes = *response_bytes;
  RETURN_IF_ERROR(Send(channel::RunRecord{{run}}));
  return ReceiveCompletion();
}

absl::StatusOr<TestWorker::Answer> TestWorker::ReceiveCompletion() {
  ASSIGN_OR_RETURN(channel::ToFront answer, Receive());
  auto* record = std::get_if<channel::CompletionRecord>(&answer);
  if (record == nullptr || record->completions.size() != 1) {
    return absl::InternalError(
        base::Cat("a record of kind ", answer.index(), " that is not one completion"));
  }
  Answer result{.completion = std::move(record->completions[0]), .outputs = {}};
  result.outputs = Copy(result.completion, response_);
  return result;
}

std::vector<tensor::Tensor> TestWorker::Copy(const channel::Completion& completion,
                                             const channel::ResponseSegment& segment) const {
  std::vector<tensor::Tensor> outputs;
  for (const channel::TensorDescriptor& output : completion.outputs) {
    tensor::Tensor tensor{
        .dtype = output.dtype, .shape = output.shape, .buffer = tensor::Buffer(output.bytes)};
    if (!channel::CopyFromShared(tensor.buffer.bytes(), segment, output.offset).ok()) return {};
    outputs.push_back(std::move(tensor));
  }
  return outputs;
}

absl::Status TestWorker::Send(const channel::ToWorker& record,
                              const std::vector<int>& descriptors) {
  return socket_->Send(channel::Encode(incarnation_, record), descriptors);
}

absl::Status TestWorker::SendBytes(std::string_view bytes) { return socket_->Send(bytes); }

absl::StatusOr<channel::ToFront> TestWorker::Receive(absl::Duration patience) {
  while (true) {
    RETURN_IF_ERROR(AwaitReadable(socket_->fd(), patience));
    ASSIGN_OR_RETURN(const channel::Packet packet, socket_->Receive(limits::kRecordBytesMax, 0));
    ASSIGN_OR_RETURN(channel::ToFront record, channel::DecodeToFront(packet.bytes, incarnation_));
    if (!std::holds_alternative<channel::HeartbeatRecord>(record)) return record;
    ++heartbeats_;
  }
}

std::optional<Ended> TestWorker::Wait() {
  const std::optional<Ended> ended = WaitFor(pid_);
  waited_ = ended.has_value();
  return ended;
}

std::string TestWorker::Output() {
  fcntl(out_.get(), F_SETFL, O_NONBLOCK);
  char buffer[4096];
  for (ssize_t got = 0; (got = read(out_.get(), buffer, sizeof(buffer))) > 0;) {
    output_.append(buffer, static_cast<size_t>(got));
  }
  return output_;
}

std::optional<Ended> WaitFor(pid_t pid, absl::Duration patience) {
  const absl::Time until = base::MonotonicClock().Now() + patience;
  while (base::MonotonicClock().Now() < until) {
    int status = 0;
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid) {
      return Ended{.exited = WIFEXITED(status),
                   .code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                   .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    }
    if (got < 0) return std::nullopt;
    poll(nullptr, 0, 1);
  }
  return std::nullopt;
}

std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  std::ifstream file(base::Cat("/proc/self/task/", getpid(), "/children"));
  for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  return children;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

tensor::Tensor Floats(const std::vector<float>& values) {
  return MakeTensor(tensor::DType::kFloat, {static_cast<int64_t>(values.size())}, values);
}

tensor::Tensor Strings(tensor::Shape shape, const std::vector<std::string>& values) {
  uint64_t payload = 0;
  for (const std::string& value : values) payload += value.size();
  tensor::Tensor made{.dtype = tensor::DType::kString,
                      .shape = shape,
                      .buffer = tensor::Buffer(tensor::PackedStringBytes(values.size(), payload))};
  tensor::StringWriter writer(made.buffer.bytes(), values.size());
  for (const std::string& value : values) writer.Add(value);
  return made;
}

std::vector<std::string> StringValues(const tensor::Tensor& tensor) {
  std::vector<std::string> values;
  const auto reader = tensor::StringReader::Open(tensor.buffer.bytes(),
                                                 static_cast<uint64_t>(tensor.shape.elements()));
  if (!reader.ok()) return {std::string(base::Message(reader.status()))};
  for (uint64_t i = 0; i < reader->size(); ++i) values.emplace_back((*reader)[i]);
  return values;
}

}  // namespace tensord::testing
