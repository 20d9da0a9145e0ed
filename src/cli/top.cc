// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>

#include "base/clock.h"
#include "base/text.h"
#include "cli/between.h"
#include "cli/commands.h"
#include "doctor/top/watcher.h"

namespace tensord::cli {
namespace {

struct TopOptions {
  doctor::WatchPlan plan;
  double interval = 1;
  bool once = false;
  bool json = false;
};

void Describe(CLI::App& app, TopOptions* options) {
  app.add_option("--server", options->plan.server,
                 "host:port of a tensord's REST port, whose monitoring config enables its page");
  app.add_option("--metrics_path", options->plan.metrics_path, "Where that page is")
      ->capture_default_str();
  app.add_option("--training_status", options->plan.ranks_file,
                 "A training job's status file; see docs/doctor.md");
  app.add_option("--interval", options->interval, "Seconds between two looks")
      ->check(Between(0.1, 3600.0))
      ->capture_default_str();
  app.add_flag("--once", options->once, "Look twice, print once and end");
  app.add_flag("--json", options->json, "A JSON object a look, one a line");
}

volatile sig_atomic_t stop = 0;
void Stop(int) { stop = 1; }

// The terminal's second screen without line editing, while it lives.
class Screen {
 public:
  Screen() {
    if (tcgetattr(STDIN_FILENO, &before_) == 0) {
      keys_ = true;
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    std::fputs("\033[?1049h\033[?25l", stdout);
  }
  ~Screen() {
    std::fputs("\033[?25h\033[?1049l", stdout);
    std::fflush(stdout);
    if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  bool keys() const { return keys_; }
  static void Show(const std::string& text) {
    std::fputs("\033[H\033[2J", stdout);
    std::fputs(text.c_str(), stdout);
    std::fputs("\nq: end\n", stdout);
    std::fflush(stdout);
  }

 private:
  termios before_{};
  bool keys_ = false;
};

bool AskedToEnd() {
  char key = 0;
  const ssize_t got = read(STDIN_FILENO, &key, 1);
  return got <= 0 || key == 'q' || key == 3;
}

int Run(const TopOptions& options) {
  struct sigaction action {};
  action.sa_handler = Stop;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  doctor::Watcher watcher(doctor::FilesOfThisMachine(), options.plan, &base::MonotonicClock());
  const absl::Duration interval = absl::Seconds(options.interval);
  watcher.Look();
  const bool live = !options.once && !options.json && isatty(STDOUT_FILENO) == 1;
  std::optional<Screen> screen;
  if (live) screen.emplace();
  const bool keys = screen.has_value() && screen->keys();
  while (stop == 0) {
    if (doctor::Pause(interval, keys) && AskedToEnd()) break;
    if (stop != 0) break;
    const doctor::View view = watcher.Look();
    const std::string text = options.json ? doctor::ViewJson(view) : doctor::ViewText(view, live);
    if (live) {
      Screen::Show(text);
    } else if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
      return 1;  // The reader has gone.
    }
    if (options.once) break;
  }
  return 0;
}

}  // namespace

int Top(const Arguments& arguments) {
  CLI::App app("Shows what the machine, its GPUs, a server and a training job do", "tensord top");
  TopOptions options;
  Describe(app, &options);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!options.plan.server.empty() && options.plan.server.rfind(':') == std::string::npos) {
    std::fprintf(stderr, "tensord top: --server %s is not host:port\n",
                 options.plan.server.c_str());
    return 2;
  }
  return Run(options);
}

}  // namespace tensord::cli
