// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensord::bench {

// Reads HTTP/1.1 answers piece by piece: Content-Length, chunks, or until the end of the
// connection.
class HttpAnswer {
 public:
  enum class State { kMore, kDone, kBad };

  // Takes what belongs to this answer off the front of *bytes.
  State Feed(std::string_view* bytes);
  // The connection has ended; true when that completes the answer.
  bool End() const { return stage_ == Stage::kUntilEnd; }
  // Makes room for the next. `keep_body`: of good answers, too; an error's is always kept.
  void Reset(bool keep_body);

  int status() const { return status_; }
  bool keeps_alive() const { return keeps_alive_; }
  // A part of it when it is long.
  const std::string& body() const { return body_; }

 private:
  enum class Stage { kHead, kBody, kUntilEnd, kChunkSize, kChunk, kTrailer, kDone, kBad };

  void ReadHead(std::string_view* bytes);
  void ReadFields(std::string_view head);
  void ReadBody(std::string_view* bytes);
  void ReadLine(std::string_view* bytes);
  void TakeLine(std::string_view line);

  Stage stage_ = Stage::kHead;
  std::string line_;  // Of the head or of a chunk's, as far as it has come.
  uint64_t left_ = 0;
  int status_ = 0;
  bool keeps_alive_ = true;
  bool keep_body_ = false;
  std::string body_;
};

}  // namespace tensord::bench
