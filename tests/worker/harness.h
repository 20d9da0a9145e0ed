// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "channel/control.h"
#include "channel/packet_socket.h"
#include "channel/record.h"
#include "channel/segment.h"
#include "engine/model_info.h"
#include "tensor/signature.h"
#include "tensor/tensor.h"

// Plays supervisor and front to the real tensord-worker binary: starts a zygote, asks it for
// workers, speaks the channel. Everything blocks, with a limit; a limit that is reached is an error
// with words.
namespace tensord::testing {

inline constexpr absl::Duration kPatience = absl::Seconds(60);  // A loaded CI machine is slow.

// Where things are; empty when they are not there, and then `why` says what to do.
struct Places {
  std::string worker;    // $TENSORD_WORKER, else the one just built.
  std::string runtime;   // $TENSORD_TENSORFLOW_DIR, else the source tree's .venv.
  std::string models;    // $TENSORD_TEST_MODELS, else build/test_models.
  std::string fixtures;  // $TENSORD_FIXTURES, else ../shared/fixtures beside the source tree.
  std::string why;
};
const Places& ThePlaces();

// How a child ended: waitpid's words.
struct Ended {
  bool exited = false;
  int code = 0;    // When it exited.
  int signal = 0;  // When it was killed.
};

class TestWorker;

// A system call that fails with EPERM, always or with that first argument.
struct RefusedCall {
  int number;
  std::optional<uint32_t> first_argument = std::nullopt;
};

// One running zygote. This process is the subreaper.
class TestZygote {
 public:
  struct Options {
    std::vector<std::string> arguments = {};      // Beside --zygote.
    std::vector<std::string> environment = {};    // "NAME=value", the only ones.
    uid_t user = 0;                               // Who the zygote runs as; 0 changes nothing.
    std::vector<RefusedCall> refused_calls = {};  // As a container's seccomp profile does.
  };
  static absl::StatusOr<std::unique_ptr<TestZygote>> Start(Options options);
  ~TestZygote();

  // Asks for a worker and waits for its pid and its HelloRecord.
  absl::StatusOr<std::unique_ptr<TestWorker>> Fork(uint64_t response_bytes = 4 << 20);
  pid_t pid() const { return pid_; }
  // Closes the front's end and waits.
  std::optional<Ended> Close();

 private:
  TestZygote(pid_t pid, channel::PacketSocket socket) : pid_(pid), socket_(std::move(socket)) {}

  pid_t pid_;
  std::optional<channel::PacketSocket> socket_;
  uint64_t next_ = 1;
};

// The front's view of one worker.
class TestWorker {
 public:
  struct Parts {
    uint64_t incarnation;
    channel::PacketSocket socket;
    channel::RequestSegment request;
    channel::ResponseSegment response;
    base::UniqueFd out;  // The read end of its stdout and stderr.
  };
  TestWorker(pid_t pid, absl::Duration start, Parts parts);
  ~TestWorker();  // Kills it, if it still runs.

  pid_t pid() const { return pid_; }
  absl::Duration start() const { return start_; }  // From the fork request to the hello.
  const engine::ModelInfo& info() const { return info_; }
  const tensor::SignatureList& signatures() const { return signatures_; }

  static channel::LoadRecord LoadOf(std::string directory);
  // Sends the record and waits for what comes of it; the description is parsed.
  absl::Status Load(const channel::LoadRecord& record);
  // Ends its warm-up: stage 2. Gives the report.
  absl::StatusOr<std::string> Seal();

  struct Answer {
    channel::Completion completion;
    std::vector<tensor::Tensor> outputs;  // Copied out of the segment.
  };
  // One run of the named signature; outputs may take `response_bytes`, the whole segment if none.
  absl::StatusOr<Answer> Run(std::string_view signature,
                             const std::vector<const tensor::Tensor*>& inputs,
                             std::optional<uint64_t> response_bytes = std::nullopt);
  // Puts the inputs at `offset` of the request segment and describes them.
  channel::Run Prepare(std::string_view signature, const std::vector<const tensor::Tensor*>& inputs,
                       uint64_t offset = 0);
  absl::Status Send(const channel::ToWorker& record, const std::vector<int>& descriptors = {});
  absl::Status SendBytes(std::string_view bytes);
  // The next record that is no heartbeat (those are counted), UNAVAILABLE at the channel's end.
  absl::StatusOr<channel::ToFront> Receive(absl::Duration patience = kPatience);
  absl::StatusOr<Answer> ReceiveCompletion();
  std::vector<tensor::Tensor> Copy(const channel::Completion& completion,
                                   const channel::ResponseSegment& segment) const;
  int heartbeats() const { return heartbeats_; }

  // Closes the front's end of the channel.
  void CloseChannel() { socket_.reset(); }
  std::optional<Ended> Wait();
  // All it has written so far.
  std::string Output();

 private:
  pid_t pid_;
  absl::Duration start_;
  uint64_t incarnation_;
  std::optional<channel::PacketSocket> socket_;
  channel::RequestSegment request_;
  channel::ResponseSegment response_;
  base::UniqueFd out_;
  std::string output_;
  engine::ModelInfo info_;
  tensor::SignatureList signatures_;
  uint64_t next_ = 1;
  int heartbeats_ = 0;
  bool waited_ = false;
};

// Waits for a child; empty when it has not ended in time.
std::optional<Ended> WaitFor(pid_t pid, absl::Duration patience = kPatience);
// Children of this process, zombies included.
std::vector<pid_t> Children();
std::string ReadFile(const std::string& path);

// Tensors of test values.
template <typename T>
tensor::Tensor MakeTensor(tensor::DType dtype, tensor::Shape shape, const std::vector<T>& values) {
  tensor::Tensor made{
      .dtype = dtype, .shape = shape, .buffer = tensor::Buffer(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(made.buffer.bytes().data(), values.data(), made.buffer.size());
  return made;
}
template <typename T>
std::vector<T> Values(const tensor::Tensor& tensor) {
  std::vector<T> values(tensor.buffer.size() / sizeof(T));
  if (!values.empty())
    std::memcpy(values.data(), tensor.buffer.bytes().data(), tensor.buffer.size());
  return values;
}
tensor::Tensor Floats(const std::vector<float>& values);
tensor::Tensor Strings(tensor::Shape shape, const std::vector<std::string>& values);
std::vector<std::string> StringValues(const tensor::Tensor& tensor);

}  // namespace tensord::testing
