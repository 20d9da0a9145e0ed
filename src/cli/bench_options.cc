// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/bench_options.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "base/text.h"
#include "config/warnings.h"

namespace tensord::cli {
namespace {

using B = BenchOptions;
using Member = std::variant<bool B::*, int64_t B::*, double B::*, std::string B::*,
                            std::vector<std::string> B::*>;

struct Option {
  std::string_view name;  // "" begins a group with `help` as its title.
  Member member;
  std::string_view help;
  std::string_view value = "";    // What stands for the value in --help.
  std::string_view choices = "";  // Comma list of the only values allowed.
  double min = 0;                 // Of numbers.
  double max = 1e9;
};

constexpr Option kOptions[] = {
    {"", &B::rest, "The server"},
    {"host", &B::host, "Name or address of the server", "name"},
    {"port", &B::port, "Its gRPC port, or with --rest its REST port", "n", "", 1, 65'535},
    {"rest", &B::rest, "REST (HTTP/1.1 and JSON) instead of gRPC"},
    {"oip", &B::oip, "The Open Inference Protocol (KServe v2, Triton) instead of TensorFlow's API"},
    {"tls", &B::tls, "Over TLS; the server's certificate must be for --host"},
    {"ca", &B::ca, "Trust the authorities in this PEM file instead of the system's; turns --tls on",
     "file"},

    {"", &B::rest, "What is sent. With nothing given, inputs are made from the model's metadata"},
    {"model", &B::model, "Model to call; a list shares the load out (see --zipf) [default]",
     "name,..."},
    {"signature", &B::signature, "Its signature [serving_default]", "name"},
    {"input", &B::input, "An input to make up, x:float:1,784; give it once for each input",
     "name:type:dims"},
    {"rows", &B::rows, "First dim of inputs that are made from metadata", "n", "", 1, 1e6},
    {"body_file", &B::body_file,
     "Send this: a serialized PredictRequest or a TFRecord file of PredictionLogs such as "
     "tf_serving_warmup_requests, or with --rest a JSON body",
     "file"},
    {"path", &B::path, "Another path than Predict's", "path"},
    {"request", &B::request,
     "One kind of request of a mix, NAME[=WEIGHT[:FILE]] and settings behind a space: model=, "
     "signature=, method=predict|classify|regress, input=, path=, deadline_ms=, criticality=, "
     "header=; may be repeated",
     "text"},
    {"mix", &B::mix, "A file with such a text on each line", "file"},
    {"zipf", &B::zipf,
     "Share the load among the models by Zipf's law with this exponent, the first most; 0: evenly",
     "s", "", 0, 10},
    {"deadline_ms", &B::deadline_ms,
     "Deadline of each request: told to a gRPC server, and later answers are failures; 0: none",
     "ms", "", 0, 3.6e6},
    {"criticality", &B::criticality, "Criticality of the requests, which tensord honours", "name",
     "critical-plus,critical,sheddable-plus,sheddable"},
    {"header", &B::header, "A header, or metadata of gRPC, of every request; may be repeated",
     "name:value"},
    {"try_first", &B::try_first, "First send one request of each kind, and end if it fails"},

    {"", &B::rest, "How. Without a rate: a closed loop, the next request when one is answered"},
    {"connections", &B::connections,
     "Connections; 0: 1, with --rest as many as in flight, and 256 in an open loop", "n", "", 0,
     100'000},
    {"in_flight", &B::in_flight,
     "Closed loop: requests out at a time over all connections; 0: 1 a connection, 64 with "
     "--overload",
     "n", "", 0, 1e6},
    {"rate", &B::rate,
     "Open loop: so many requests a second, whether answers come or not; latency counts from when "
     "a request was due",
     "n", "", 0, 1e7},
    {"pacing", &B::pacing, "Gaps of an open loop", "name", "poisson,constant"},
    {"rates", &B::rates, "An open loop at each of these rates, and a table", "n,..."},
    {"overload", &B::overload,
     "Measure the capacity, then an open loop at multiples of it with --deadline_ms (100 if not "
     "given): goodput and refusals"},
    {"factors", &B::factors, "These multiples", "n,..."},
    {"in_flight_max", &B::in_flight_max, "Open loop: requests above this are failed, not sent", "n",
     "", 1, 1e7},
    {"threads", &B::threads, "Threads of this program, which share out connections and rate", "n",
     "", 1, 256},
    {"one_shot", &B::one_shot, "REST: a new connection for each request"},
    {"seconds", &B::seconds, "How long to measure (each, of several)", "s", "", 0.1, 86'400},
    {"requests", &B::requests, "Measure so many requests instead", "n", "", 0, 1e12},
    {"warm_up_seconds", &B::warm_up_seconds, "Load before that", "s", "", 0, 3'600},
    {"seed", &B::seed, "Of arrivals and of the mix", "n", "", 0, 1e18},

    {"", &B::rest, "What comes out"},
    {"server_pid", &B::server_pid, "Also report the CPU time of these processes and their children",
     "pid,..."},
    {"json", &B::json,
     "Write a JSON report to this file; without a file: to stdout, instead of "
     "text",
     "file"},
    {"max_failed_percent", &B::max_failed_percent,
     "Exit with 1 when more requests failed; -1: 0, and 100 with --overload", "n", "", -1, 100},
};

template <typename T>
T MemberType(T B::*);

bool Parse(std::string_view text, bool* value) {
  *value = text == "true";
  return text == "true" || text == "false";
}
bool Parse(std::string_view text, std::string* value) {
  *value = text;
  return true;
}
bool Parse(std::string_view text, std::vector<std::string>* value) {
  value->emplace_back(text);
  return true;
}
template <typename Number>
bool Parse(std::string_view text, Number* value) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), *value);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

bool InChoices(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const std::string_view choice = choices.substr(0, choices.find(','));
    if (choice == text) return true;
    choices.remove_prefix(std::min(choice.size() + 1, choices.size()));
  }
  return false;
}

std::string Expected(const Option& option) {
  if (!option.choices.empty()) return base::Cat("one of ", option.choices);
  if (std::holds_alternative<bool B::*>(option.member)) return "true or false";
  return base::Cat("a number from ", option.min, " to ", option.max);
}

// Lists are appended to; `fresh` says that their default is to go first.
absl::Status SetValue(const Option& option, std::string_view text, bool fresh, B* options) {
  const bool ok = std::visit(
      [&](auto member) {
        using T = decltype(MemberType(member));
        T& place = options->*member;
        if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          if (fresh) place.clear();
        }
        if (!option.choices.empty() && !InChoices(option.choices, text)) return false;
        if (!Parse(text, &place)) return false;
        if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
          const auto number = static_cast<double>(place);
          return number >= option.min && number <= option.max;
        }
        return true;
      },
      option.member);
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(
      base::Cat("--", option.name, " takes ", Expected(option), ", not \"", text, "\""));
}

const Option* FindOption(std::string_view name) {
  for (const Option& option : kOptions) {
    if (!option.name.empty() && option.name == name) return &option;
  }
  return nullptr;
}

absl::Status Unknown(std::string_view argument) {
  if (!argument.starts_with("--")) {
    return absl::InvalidArgumentError(
        base::Cat("\"", argument, "\" is no option; options begin with --"));
  }
  const std::string_view name = argument.substr(2, argument.find('=') - 2);
  std::vector<std::string_view> names;
  for (const Option& option : kOptions) names.push_back(option.name);
  const std::string_view nearest = config::NearestName(name, names);
  return absl::InvalidArgumentError(base::Cat(
      "there is no option --", name,
      nearest.empty() ? "; --help lists all" : base::Cat("; did you mean --", nearest, "?")));
}

// What an option gets that is given without "=".
absl::StatusOr<std::string_view> FollowingValue(const Option& option,
                                                const std::vector<std::string>& arguments,
                                                size_t* at) {
  const std::string_view next = *at < arguments.size() ? std::string_view(arguments[*at]) : "--";
  if (std::holds_alternative<bool B::*>(option.member) && next != "true" && next != "false") {
    return "true";
  }
  if (next.starts_with("--")) {
    if (option.name == "json") return "-";
    return absl::InvalidArgumentError(
        base::Cat("--", option.name, " needs a value: --", option.name, "=<", option.value, ">"));
  }
  ++*at;
  return next;
}

std::string DefaultText(const Option& option) {
  static const B defaults;
  return std::visit(
      [&](auto member) -> std::string {
        using T = decltype(MemberType(member));
        const T& value = defaults.*member;
        if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          std::string text;
          for (const std::string& part : value) text += base::Cat(text.empty() ? "" : ",", part);
          return text;
        } else {
          return base::Cat(value);
        }
      },
      option.member);
}

}  // namespace

absl::StatusOr<BenchOptions> ParseBenchOptions(const std::vector<std::string>& arguments) {
  BenchOptions options;
  std::vector<const Option*> given;
  for (size_t at = 0; at < arguments.size();) {
    const std::string_view argument = arguments[at++];
    const size_t equals = argument.find('=');
    const Option* option =
        argument.starts_with("--") ? FindOption(argument.substr(2, equals - 2)) : nullptr;
    if (option == nullptr) return Unknown(argument);
    std::string_view value = equals == std::string_view::npos ? "" : argument.substr(equals + 1);
    if (equals == std::string_view::npos) {
      ASSIGN_OR_RETURN(value, FollowingValue(*option, arguments, &at));
    }
    const bool fresh = std::find(given.begin(), given.end(), option) == given.end();
    given.push_back(option);
    RETURN_IF_ERROR(SetValue(*option, value, fresh, &options));
  }
  return options;
}

std::string BenchHelp() {
  std::string text =
      "Usage: tensord bench [options]\n\nPuts a server of TensorFlow Serving's API or the Open "
      "Inference "
      "Protocol under load and tells its\nlatencies.\nOptions are --name=value or --name value; "
      "[default] in brackets.\n"
      "  --help\n      Print this and exit.\n";
  for (const Option& option : kOptions) {
    if (option.name.empty()) {
      text += base::Cat("\n", option.help, "\n");
      continue;
    }
    const std::string value = DefaultText(option);
    text += base::Cat("  --", option.name, option.value.empty() ? "" : " ", option.value,
                      value.empty() ? "" : base::Cat(" [", value, "]"), "\n      ", option.help);
    if (!option.choices.empty()) text += base::Cat(" (one of ", option.choices, ")");
    text += ".\n";
  }
  return text +
         "\nExit code: 0, 1 when the load could not be run or too many requests failed, 2 for "
         "wrong usage.\n";
}

}  // namespace tensord::cli
