// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "front/byte_stream.h"
#include "front/link.h"
#include "front/out_queue.h"
#include "front/session.h"
#include "loop/event_loop.h"

namespace tensord::front {

// Which protocols a listener takes. With both, the first bytes of a connection decide.
struct Protocols {
  bool http1 = true;
  bool http2 = true;
};

class Connection;

// Who owns connections. Threads: its loop.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual const Edge& edge() const = 0;
  virtual Protocols protocols() const = 0;
  // Memory that is used only within one call.
  virtual std::span<std::byte> read_scratch() = 0;
  virtual OutQueue* out_scratch() = 0;
  // Calls RunTurn at the end of this iteration.
  virtual void WantTurn(Connection* connection) = 0;
  virtual void OnActivity(Connection* connection) = 0;
  // Destroys it at the end of this iteration.
  virtual void OnClosed(Connection* connection) = 0;
};

// One accepted connection: moves bytes between its stream and its session, and closes it well.
//
// Threads: its loop. Owns: the stream and the session. Lifetime: the owner outlives it and destroys
// it between iterations, never from inside a callback.
class Connection final : public Link {
 public:
  Connection(ConnectionOwner* owner, std::unique_ptr<ByteStream> stream, std::string peer);
  ~Connection() override;

  // For the owner.
  void RunTurn();
  void OnTick(absl::Time now);
  void StartDrain();
  bool closed() const { return state_ == State::kClosed; }
  // No request is under way, so that it may be closed to make room.
  bool idle() const;
  size_t open_calls() const { return session_ == nullptr ? 0 : session_->open_calls(); }
  absl::Time last_activity() const { return last_read_; }

  // Link, for the session.
  const Edge& edge() const override { return owner_->edge(); }
  const std::string& peer() const override { return peer_; }
  PeerNames peer_names() const override { return peer_names_; }
  void WantTurn() override;
  void Leaves(std::shared_ptr<Call> call) override;
  void SetReading(bool on) override;
  void CloseWhenWritten(Closing closing) override;
  void Abort() override;

  // The owner's bookkeeping.
  bool turn_wanted = false;
  std::list<std::unique_ptr<Connection>>::iterator place;

 private:
  enum class State : uint8_t {
    kChoosing,   // The first bytes tell the protocol.
    kOpen,       // The session reads and writes.
    kFinishing,  // What is queued goes out, then kLingering.
    kLingering,  // All is written; reads on for a while, so that no reset overtakes the answer.
    kClosed,     // Waits to be destroyed.
  };

  void OnReady(uint32_t events);
  void ReadSome();
  void RefusePlain();
  void TakeBytes(std::span<const std::byte> bytes);
  void ChooseProtocol(std::span<const std::byte> bytes);
  void OnEnd();
  void AfterWrite(const IoResult& result);
  void FinishLeaving(bool delivered);
  void StartLinger();
  void UpdateEvents();

  // Constant after construction.
  ConnectionOwner* const owner_;
  const std::string peer_;

  std::unique_ptr<ByteStream> stream_;
  PeerNames peer_names_;              // Known once the first bytes have come.
  std::unique_ptr<Session> session_;  // Null while choosing.
  State state_ = State::kChoosing;
  std::string first_bytes_;                     // While choosing.
  OutQueue backlog_;                            // What the socket did not take at once.
  std::vector<std::shared_ptr<Call>> leaving_;  // Their answers end in what is being written.
  bool reading_ = true;
  bool input_ended_ = false;
  bool draining_ = false;
  bool write_blocked_ = false;
  bool read_wants_write_ = false;  // A read goes on once the stream can write, ...
  bool write_wants_read_ = false;  // ... and a write once it can read (TLS does both).
  Closing closing_ = Closing::kPolite;
  uint32_t events_ = 0;
  absl::Time last_read_;
  absl::Time last_write_;  // Or since when output waits.
  absl::Time linger_until_;
  size_t lingered_bytes_ = 0;
  loop::EventLoop::Watch watch_;  // Goes before the stream.
};

}  // namespace tensord::front
