// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdio>
#include <string_view>

#include "base/text.h"
#include "check/gather.h"
#include "check/json.h"
#include "check/print.h"
#include "cli/commands.h"
#include "cli/version.h"
#include "config/parse.h"

namespace tensord::cli {
namespace {

constexpr std::string_view kUsage =
    R"(Usage: tensord check [--json] [serve | tensorflow_model_server] [options]

Reads a command line and the files it names, looks at the model directories, and says what would
happen; nothing is started. Put it in front of a command line that works with tensorflow_model_server
to see every difference as well.

Exit code: 0 if the server would start and serve all models, 1 if not, 2 for wrong usage.
)";

bool IsOriginal(std::string_view program) {
  return program.substr(program.rfind('/') + 1) == "tensorflow_model_server";
}

}  // namespace

int Check(const Arguments& arguments) {
  size_t at = 0;
  const bool json = at < arguments.size() && arguments[at] == "--json";
  if (json) ++at;
  if (at < arguments.size() && (arguments[at] == "--help" || arguments[at] == "-h")) {
    std::fwrite(kUsage.data(), 1, kUsage.size(), stdout);
    return 0;
  }
  auto style = config::Style::kServe;
  if (at < arguments.size() && !arguments[at].starts_with("--")) {
    if (IsOriginal(arguments[at])) {
      style = config::Style::kOriginal;
    } else if (arguments[at] != "serve") {
      std::fwrite(kUsage.data(), 1, kUsage.size(), stderr);
      return 2;
    }
    ++at;
  }
  const Arguments rest(arguments.begin() + static_cast<ptrdiff_t>(at), arguments.end());
  config::CommandLine line = style == config::Style::kOriginal
                                 ? config::ParseOriginalStyle("tensorflow_model_server", rest)
                                 : config::ParseServeStyle("tensord serve", rest);
  if (line.exit_code.has_value()) {
    std::fputs(line.err.empty() ? line.out.c_str() : line.err.c_str(), stderr);
    return *line.exit_code == 0 ? 0 : 2;
  }
  // The original names the first argument that it does not know, prints its usage and goes on.
  if (!line.out.empty()) {
    line.warnings.push_back(line.out.substr(0, line.out.find('\n')));
    line.out.clear();
  }
  check::Report report = check::Gather(style, line);
  if (const absl::Status worker = CheckWorkerProgram(); !worker.ok()) {
    report.errors.emplace_back(base::Message(worker));
  }
  const std::string text = json ? check::ToJson(report) : check::ToText(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return report.ok() ? 0 : 1;
}

}  // namespace tensord::cli
