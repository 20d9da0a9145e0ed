// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/codec.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "base/ascii.h"
#include "base/text.h"

namespace tensord::train {
namespace {

std::string Code(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && c != '%' && c != '=' && c != ',' && byte != 0x7f) {
      out.push_back(c);
      continue;
    }
    out.push_back('%');
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  }
  return out;
}

std::string Decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && base::HexDigit(text[i + 1]) >= 0 &&
        base::HexDigit(text[i + 2]) >= 0) {
      out.push_back(
          static_cast<char>(base::HexDigit(text[i + 1]) * 16 + base::HexDigit(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// Calls `use` with each part of "a,b,c"; "" has none.
template <typename Use>
void Split(std::string_view text, char at, Use use) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Writes the fields of a message.
class Writer {
 public:
  explicit Writer(std::string_view verb) : line_(verb) {}
  void Field(std::string_view name, const std::string& value) {
    if (!value.empty()) line_ += base::Cat(" ", name, "=", Code(value));
  }
  template <std::integral Number>
  void Field(std::string_view name, const Number& value) {
    line_ += base::Cat(" ", name, "=", static_cast<int64_t>(value));
  }
  void Field(std::string_view name, const std::vector<std::string>& values) {
    if (values.empty()) return;
    line_ += base::Cat(" ", name, "=");
    for (size_t i = 0; i < values.size(); ++i)
      line_ += base::Cat(i == 0 ? "" : ",", Code(values[i]));
  }
  void Field(std::string_view name, const Trouble& value) { Field(name, static_cast<int>(value)); }
  void Field(std::string_view name, const Mode& value) { Field(name, static_cast<int>(value)); }
  std::string line() && { return std::move(line_); }

 private:
  std::string line_;
};

// Reads them.
class Reader {
 public:
  explicit Reader(std::string_view line) {
    bool first = true;
    Split(line, ' ', [&](std::string_view part) {
      const size_t equals = part.find('=');
      if (first) {
        verb_ = part;
      } else if (equals != std::string_view::npos) {
        fields_[std::string(part.substr(0, equals))] = part.substr(equals + 1);
      }
      first = false;
    });
  }
  const std::string& verb() const { return verb_; }

  void Field(std::string_view name, std::string& value) { value = Decode(Raw(name)); }
  template <std::integral Number>
  void Field(std::string_view name, Number& value) {
    const std::string_view text = Raw(name);
    int64_t number = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end.ec == std::errc() && !text.empty()) value = static_cast<Number>(number);
  }
  void Field(std::string_view name, std::vector<std::string>& values) {
    Split(Raw(name), ',', [&](std::string_view part) { values.push_back(Decode(part)); });
  }
  void Field(std::string_view name, Trouble& value) {
    int number = 0;
    Field(name, number);
    if (number >= 0 && number <= static_cast<int>(Trouble::kEcho)) {
      value = static_cast<Trouble>(number);
    }
  }
  void Field(std::string_view name, Mode& value) {
    int number = 0;
    Field(name, number);
    if (number >= 0 && number <= static_cast<int>(Mode::kLocal)) value = static_cast<Mode>(number);
  }

 private:
  std::string_view Raw(std::string_view name) const {
    const auto at = fields_.find(std::string(name));
    return at == fields_.end() ? std::string_view() : std::string_view(at->second);
  }
  std::string verb_;
  std::map<std::string, std::string> fields_;
};

// One list of fields a message, for both directions.
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const Joined*) {
  io.Field("address", m.address);
  io.Field("node_rank", m.node_rank);
  io.Field("ranks", m.ranks);
  io.Field("host", m.facts.host);
  io.Field("python", m.facts.python);
  io.Field("tensorflow", m.facts.tensorflow);
  io.Field("keras", m.facts.keras);
  io.Field("cuda", m.facts.cuda);
  io.Field("script", m.facts.script_hash);
  io.Field("gpus", m.facts.gpus);
  io.Field("cpus", m.facts.cpus);
  io.Field("files", m.facts.open_files);
  io.Field("clock_ms", m.facts.clock_ms);
  io.Field("disk_free", m.facts.disk_free_bytes);
  io.Field("mark", m.facts.checkpoint_mark);
  io.Field("mark_error", m.facts.checkpoint_error);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const Ready*) {
  io.Field("generation", m.generation);
  io.Field("ports", m.ports);
  io.Field("error", m.error);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const Probed*) {
  io.Field("generation", m.generation);
  io.Field("unreachable", m.unreachable);
  io.Field("marks", m.marks);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const RankEnded*) {
  io.Field("generation", m.generation);
  io.Field("rank", m.end.rank);
  io.Field("code", m.end.code);
  io.Field("signal", m.end.signal);
  io.Field("by_us", m.end.by_us);
  io.Field("dumped", m.end.dumped);
  io.Field("since_ms", m.end.since_ms);
  io.Field("trouble", m.end.trouble);
  io.Field("words", m.end.words);
  io.Field("advice", m.end.advice);
  io.Field("port_stolen", m.end.port_stolen);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const RanksGone*) {
  io.Field("generation", m.generation);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const RankStuck*) {
  io.Field("generation", m.generation);
  io.Field("rank", m.rank);
  io.Field("why", m.why);
  io.Field("perhaps_at_work", m.perhaps_at_work);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const StopWanted*) {
  io.Field("signal", m.signal);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const Prepare*) {
  io.Field("generation", m.generation);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const Probe*) {
  io.Field("generation", m.generation);
  io.Field("addresses", m.addresses);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const StartRanks*) {
  io.Field("generation", m.generation);
  io.Field("restarts", m.restarts);
  io.Field("first_rank", m.first_rank);
  io.Field("node", m.node);
  io.Field("nodes", m.nodes);
  io.Field("mode", m.mode);
  io.Field("servers", m.parameter_servers);
  io.Field("run_id", m.run_id);
  io.Field("addresses", m.addresses);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const StopRanks*) {
  io.Field("generation", m.generation);
  io.Field("signal", m.signal);
  io.Field("grace_ms", m.grace_ms);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const DumpStacks*) {
  io.Field("generation", m.generation);
}
template <typename Io, typename Message>
void Fields(Io& io, Message& m, const Finish*) {
  io.Field("code", m.code);
  io.Field("words", m.words);
}

constexpr std::string_view Verb(const Joined*) { return "joined"; }
constexpr std::string_view Verb(const Ready*) { return "ready"; }
constexpr std::string_view Verb(const Probed*) { return "probed"; }
constexpr std::string_view Verb(const RankEnded*) { return "ended"; }
constexpr std::string_view Verb(const RanksGone*) { return "gone"; }
constexpr std::string_view Verb(const RankStuck*) { return "stuck"; }
constexpr std::string_view Verb(const StopWanted*) { return "stopping"; }
constexpr std::string_view Verb(const Prepare*) { return "prepare"; }
constexpr std::string_view Verb(const Probe*) { return "probe"; }
constexpr std::string_view Verb(const StartRanks*) { return "start"; }
constexpr std::string_view Verb(const StopRanks*) { return "stop"; }
constexpr std::string_view Verb(const DumpStacks*) { return "dump"; }
constexpr std::string_view Verb(const Finish*) { return "finish"; }

template <typename Variant>
std::string Write(const Variant& variant) {
  return std::visit(
      [](const auto& message) {
        using Message = std::decay_t<decltype(message)>;
        const Message* const kind = nullptr;
        Writer writer(Verb(kind));
        Fields(writer, message, kind);
        return std::move(writer).line();
      },
      variant);
}

template <typename Message, typename Variant>
bool Take(Reader& reader, Variant* variant) {
  const Message* const kind = nullptr;
  if (reader.verb() != Verb(kind)) return false;
  Message message;
  Fields(reader, message, kind);
  *variant = std::move(message);
  return true;
}

absl::Status Unknown(const Reader& reader) {
  return absl::InvalidArgumentError(
      base::Cat("\"", reader.verb().substr(0, 32), "\" is no message of a tensord train agent"));
}

}  // namespace

std::string ToLine(const Report& report) { return Write(report); }
std::string ToLine(const Command& command) { return Write(command); }

absl::StatusOr<Report> ParseReport(std::string_view line) {
  Reader reader(line);
  Report report;
  if (Take<Joined>(reader, &report) || Take<Ready>(reader, &report) ||
      Take<Probed>(reader, &report) || Take<RankEnded>(reader, &report) ||
      Take<RanksGone>(reader, &report) || Take<RankStuck>(reader, &report) ||
      Take<StopWanted>(reader, &report)) {
    return report;
  }
  return Unknown(reader);
}

absl::StatusOr<Command> ParseCommand(std::string_view line) {
  Reader reader(line);
  Command command;
  if (Take<Prepare>(reader, &command) || Take<Probe>(reader, &command) ||
      Take<StartRanks>(reader, &command) || Take<StopRanks>(reader, &command) ||
      Take<DumpStacks>(reader, &command) || Take<Finish>(reader, &command)) {
    return command;
  }
  return Unknown(reader);
}

std::string WithToken(std::string line, std::string_view token) {
  return token.empty() ? line : base::Cat(line, " token=", Code(token));
}

std::string TokenOf(std::string_view line) {
  Reader reader(line);
  std::string token;
  reader.Field("token", token);
  return token;
}

}  // namespace tensord::train
