// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/text_proto.h"

#include <errno.h>
#include <fcntl.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace tensord::config {
namespace {

// Collects "path:line:column: words"; the parser counts from 0.
class Errors final : public google::protobuf::io::ErrorCollector {
 public:
  explicit Errors(std::string_view path) : path_(path) {}

  void AddError(int line, int column, const std::string& message) override {
    if (++count_ > kErrorsMax) return;
    if (count_ > 1) text_ += "; ";
    text_ += path_;
    if (line >= 0) text_ += base::Cat(":", line + 1, ":", column + 1);
    text_ += base::Cat(": ", std::string_view(message).substr(0, kWordsMax));
  }
  // The parser warns about deprecated fields, which are the original's and read as it reads them.
  void AddWarning(int, int, const std::string&) override {}

  const std::string& text() const { return text_; }

 private:
  static constexpr size_t kWordsMax = 300;  // A message may quote what it found, however long.
  static constexpr int kErrorsMax = 5;      // The first ones matter; the rest follows from them.

  const std::string path_;
  std::string text_;
  int count_ = 0;
};

// What keeps a file of that kind from being read; "" for a regular one. A pipe would be waited for
// without an end, and has nothing to say when the server reads it again.
std::string_view KindProblem(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "this is a directory; name a file in it";
  return "this is no regular file but a pipe, a socket or a device, and the server reads its files "
         "more than once; write the text to a file and name that";
}

}  // namespace

static absl::StatusOr<std::string> ReadFromDisk(std::string_view option, const std::string& path) {
  const auto error = [&](std::string_view words) {
    return absl::InvalidArgumentError(base::Cat("--", option, "=", path, ": ", words));
  };
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid() && errno == ENOENT) {
    return absl::NotFoundError(base::Cat("--", option, "=", path, ": there is no such file"));
  }
  if (!file.valid() && errno == ENXIO) return error(KindProblem(S_IFSOCK));
  if (!file.valid()) return error(std::strerror(errno));
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return error(std::strerror(errno));
  if (const std::string_view problem = KindProblem(found.st_mode); !problem.empty()) {
    return error(problem);
  }
  std::string text;
  std::vector<char> part(64 * 1024);
  while (true) {
    const ssize_t got = read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error(std::strerror(errno));
    if (got == 0) return text;
    text.append(part.data(), static_cast<size_t>(got));
    if (text.size() > limits::kConfigFileBytesMax) {
      return error(base::Cat("larger than ", limits::kConfigFileBytesMax,
                             " bytes; this is no configuration file"));
    }
  }
}

absl::StatusOr<std::string> ReadFile(std::string_view option, const std::string& path,
                                     FileTexts* texts) {
  if (texts == nullptr) return ReadFromDisk(option, path);
  if (const auto at = texts->find(option); at != texts->end()) return at->second;
  ASSIGN_OR_RETURN(std::string text, ReadFromDisk(option, path));
  texts->emplace(option, text);
  return text;
}

absl::Status ParseTextProto(std::string_view text, std::string_view path,
                            google::protobuf::Message* message) {
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  Errors errors(path);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(64);  // The deepest message we know has 5 levels.
  if (parser.Parse(&input, message)) return absl::OkStatus();
  return absl::InvalidArgumentError(base::Cat(
      "Error parsing text-format ", message->GetDescriptor()->full_name(), ": ", errors.text()));
}

absl::Status ReadTextProto(std::string_view option, const std::string& path, FileTexts* texts,
                           google::protobuf::Message* message) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(option, path, texts));
  return ParseTextProto(text, path, message);
}

}  // namespace tensord::config
