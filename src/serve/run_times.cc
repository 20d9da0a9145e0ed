// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/run_times.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/sched_limits.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace tensord::serve {
namespace {

constexpr std::string_view kFirstLine = "tensord run times 1\n";
// A remembered time this many times off from what was just measured is about something else.
constexpr double kPlausible = 4;

// Tabs and line ends separate; "%" begins two hex digits.
std::string Escape(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != '%' && byte != 0x7f) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::optional<std::string> Unescape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.front() != '%') {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    unsigned byte = 0;
    if (text.size() < 3) return std::nullopt;
    const auto end = std::from_chars(text.data() + 1, text.data() + 3, byte, 16);
    if (end.ptr != text.data() + 3) return std::nullopt;
    out += static_cast<char>(byte);
    text.remove_prefix(3);
  }
  return out;
}

std::string_view Take(std::string_view* text, char separator) {
  const size_t at = text->find(separator);
  const std::string_view head = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view() : text->substr(at + 1);
  return head;
}

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// rows, nanoseconds, version, signature, model.
void ParseLine(std::string_view line, RunTimeBook* book) {
  const auto rows = Number(Take(&line, '\t'));
  const auto nanoseconds = Number(Take(&line, '\t'));
  const auto version = Number(Take(&line, '\t'));
  const auto signature = Unescape(Take(&line, '\t'));
  const auto model = Unescape(line);
  if (!rows || !nanoseconds || !version || !signature || !model || model->empty()) return;
  (*book)[{*model, *version, *signature}][*rows] = absl::Nanoseconds(*nanoseconds);
}

absl::Status Failed(std::string_view what, const std::string& path) {
  return absl::UnavailableError(base::Cat(what, " ", path, ": ", std::strerror(errno)));
}

std::string PathIn(const std::string& directory) { return base::Cat(directory, "/run_times"); }

}  // namespace

std::string PrintRunTimes(const RunTimeBook& book) {
  std::string text(kFirstLine);
  size_t lines = 0;
  for (const auto& [key, times] : book) {
    const auto& [model, version, signature] = key;
    for (const auto& [rows, time] : times) {
      if (++lines > limits::kRunTimesMax) return text;
      text += base::Cat(rows, "\t", absl::ToInt64Nanoseconds(time), "\t", version, "\t",
                        Escape(signature), "\t", Escape(model), "\n");
    }
  }
  return text;
}

RunTimeBook ParseRunTimes(std::string_view text) {
  RunTimeBook book;
  if (!text.starts_with(kFirstLine)) return book;
  text.remove_prefix(kFirstLine.size());
  for (size_t lines = 0; !text.empty() && lines < limits::kRunTimesMax; ++lines) {
    ParseLine(Take(&text, '\n'), &book);
  }
  return book;
}

std::vector<sched::RunTimeHint> HintsFor(const RunTimeBook& book, const std::string& model,
                                         int64_t version, const tensor::SignatureList& signatures,
                                         std::span<const sched::RunTimeHint> measured) {
  std::vector<sched::RunTimeHint> hints(measured.begin(), measured.end());
  for (size_t i = 0; i < signatures.size(); ++i) {
    const auto known = book.find({model, version, signatures[i].name});
    if (known == book.end()) continue;
    const int signature = static_cast<int>(i);
    bool plausible = true;
    for (const sched::RunTimeHint& now : measured) {
      const auto then = known->second.find(now.rows);
      if (now.signature != signature || then == known->second.end()) continue;
      const double ratio = absl::FDivDuration(then->second, now.time);
      plausible = plausible && ratio > 1 / kPlausible && ratio < kPlausible;
    }
    if (!plausible) continue;
    for (const auto& [rows, time] : known->second) hints.push_back({signature, rows, time});
  }
  return hints;
}

RunTimeBook ReadRunTimes(const std::string& directory) {
  const base::UniqueFd file(open(PathIn(directory).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return {};
  std::string text(limits::kRunTimesFileBytesMax, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  return ParseRunTimes(std::string_view(text).substr(0, size));
}

absl::Status WriteRunTimes(const std::string& directory, const RunTimeBook& book) {
  const std::string path = PathIn(directory);
  const std::string fresh = path + ".new";
  const std::string text = PrintRunTimes(book);
  const base::UniqueFd file(
      open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.valid()) return Failed("cannot write", fresh);
  for (size_t done = 0; done < text.size();) {
    const ssize_t put = write(file.get(), text.data() + done, text.size() - done);
    if (put <= 0) return Failed("cannot write", fresh);
    done += static_cast<size_t>(put);
  }
  if (rename(fresh.c_str(), path.c_str()) != 0) return Failed("cannot replace", path);
  return absl::OkStatus();
}

}  // namespace tensord::serve
