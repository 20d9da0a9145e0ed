// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <map>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

constexpr std::string_view kListening = "0A";  // TCP_LISTEN in /proc/net/tcp.
constexpr int64_t kBacklogMin = 1024;
constexpr int kFirstFreePort = 1024;  // Below it only root may listen, by default.

std::optional<int> HexPort(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  int port = 0;
  for (const char c : address.substr(colon + 1)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0 || port > 0xffff) return std::nullopt;
    port = port * 16 + digit;
  }
  return port;
}

std::map<int, std::string> Listening(const Machine& machine) {
  std::map<int, std::string> ports;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::string table = machine.ReadOr(path);
    for (const std::string_view line : Split(table, "\n")) {
      const auto words = Split(line, " ");
      if (words.size() < 8 || words[3] != kListening) continue;
      if (const auto port = HexPort(words[1])) ports.emplace(*port, std::string(words[7]));
    }
  }
  return ports;
}

Finding Port(int port, const std::map<int, std::string>& taken, const Machine& machine) {
  Finding finding{.id = base::Cat("port.", port), .seen = base::Cat("port ", port, " is free")};
  const auto holder = taken.find(port);
  if (holder != taken.end()) {
    finding.level = Level::kWarning;
    finding.seen = base::Cat("port ", port, " is in use, by a process of user ", holder->second);
    finding.why = "a second server cannot listen there";
    finding.action = base::Cat("see who has it: ss -ltnp 'sport = :", port, "'");
    return finding;
  }
  const std::string text = machine.ReadOr("/proc/sys/net/ipv4/ip_local_port_range");
  const auto range = Split(text, " \t\n");
  if (range.size() == 2 && port >= ToNumber(range[0]).value_or(1 << 16) &&
      port <= ToNumber(range[1]).value_or(0)) {
    finding.level = Level::kInfo;
    finding.why = "it lies among the ports that outgoing connections get, and may be taken by one";
    finding.action = base::Cat("sysctl net.ipv4.ip_local_reserved_ports=", port);
  }
  if (port < kFirstFreePort && machine.user != 0) {
    finding.level = Level::kWarning;
    finding.why = "only root may listen below 1024";
    finding.action = "take a higher port, or let systemd open the socket";
  }
  return finding;
}

}  // namespace

Findings CheckPorts(const Machine& machine, const std::vector<int>& ports) {
  const auto taken = Listening(machine);
  Findings findings;
  for (const int port : ports) findings.push_back(Port(port, taken, machine));
  const int64_t backlog = ToNumber(machine.ReadOr("/proc/sys/net/core/somaxconn")).value_or(0);
  Finding finding{.id = "port.backlog", .seen = base::Cat("net.core.somaxconn=", backlog)};
  if (backlog < kBacklogMin) {
    finding.level = Level::kInfo;
    finding.why = "when many clients connect at once, connections beyond it are refused";
    finding.action = "sysctl net.core.somaxconn=4096";
  }
  findings.push_back(std::move(finding));
  return findings;
}

}  // namespace tensord::doctor
