// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace tensord::front {

// How one read or write ended.
struct IoResult {
  enum Kind : uint8_t {
    kDone,       // `bytes` were moved, at least one.
    kWantRead,   // Nothing moved; again when the descriptor is readable.
    kWantWrite,  // Nothing moved; again when the descriptor is writable.
    kEnd,        // Reads only: the peer sends no more.
    kFailed,     // The connection is gone.
    kPlainHttp,  // Reads of a TLS stream only: the client speaks HTTP without TLS. From now on the
                 // stream carries plain bytes, to tell it so.
  };
  Kind kind = kDone;
  size_t bytes = 0;
};

// The bytes of one connection, below every protocol: a plain socket, or TLS (tls_stream.h). Never
// blocks.
//
// Threads: its connection's loop.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // What to watch.
  virtual int fd() const = 0;
  virtual IoResult Read(std::span<std::byte> into) = 0;
  virtual IoResult Write(std::span<const iovec> pieces) = 0;
  // The names in the client's certificate; null when it has shown none. REQUIRES: a read was done.
  virtual std::shared_ptr<const std::vector<std::string>> PeerNames() const { return nullptr; }
  // Tells the peer that nothing more comes. What was written before still arrives.
  virtual void ShutdownWrite() = 0;
  // Bytes that were already taken from the descriptor wait in the stream (TLS): the descriptor may
  // never become readable again, so read until this is false.
  virtual bool HasBufferedInput() const { return false; }
};

// REQUIRES: `socket` is a connected, non-blocking TCP or unix stream socket.
std::unique_ptr<ByteStream> MakePlainStream(base::UniqueFd socket);

}  // namespace tensord::front
