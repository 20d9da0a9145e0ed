// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/json.h"
#include "doctor/parse_json.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

using google::protobuf::Value;

struct Cluster {
  std::map<std::string, std::vector<std::string>> jobs;
};

void Problem(std::string seen, std::string action, Findings* findings) {
  findings->push_back({.id = "env.TF_CONFIG",
                       .level = Level::kError,
                       .seen = std::move(seen),
                       .why = "TensorFlow's processes do not find each other: they wait for many "
                              "minutes, or fail at the start",
                       .action = std::move(action)});
}

// "host:port", "[::1]:port"; empty when it is that.
std::string AddressProblem(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return "is not host:port";
  const auto port = ToNumber(address.substr(colon + 1));
  if (!port.has_value() || *port < 1 || *port > 65535) return "has no port from 1 to 65535";
  if (address.find("://") != std::string::npos) return "has a scheme; it must be host:port only";
  return "";
}

void ReadJob(const std::string& job, const Value& value, Cluster* cluster, Findings* findings) {
  std::vector<std::string>& addresses = cluster->jobs[job];
  if (!value.has_list_value()) {
    return Problem(base::Cat("cluster.", job, " is not a list of addresses"),
                   "write [\"host:port\", ...]", findings);
  }
  for (const Value& item : value.list_value().values()) {
    const std::string& address = item.string_value();
    const std::string problem =
        item.kind_case() == Value::kStringValue ? AddressProblem(address) : "is not a text";
    if (!problem.empty()) {
      Problem(
          base::Cat("cluster.", job, "[", addresses.size(), "] ", JsonText(address), " ", problem),
          "write \"host:port\"", findings);
    }
    addresses.push_back(address);
  }
  if (addresses.empty()) Problem(base::Cat("cluster.", job, " is empty"), "remove it", findings);
}

void CheckJobs(const Cluster& cluster, Findings* findings) {
  std::set<std::string> seen;
  size_t local = 0;
  size_t all = 0;
  for (const auto& [job, addresses] : cluster.jobs) {
    for (const std::string& address : addresses) {
      ++all;
      if (!seen.insert(address).second) {
        Problem(base::Cat(address, " stands there twice"), "give each task its own port", findings);
      }
      if (address.starts_with("localhost:") || address.starts_with("127.")) ++local;
    }
    if (job == "chief" && addresses.size() > 1) {
      Problem("there is more than one chief", "leave one", findings);
    }
    if (job == "worker" || job == "chief" || job == "ps" || job == "evaluator") continue;
    findings->push_back({.id = "env.TF_CONFIG",
                         .level = Level::kWarning,
                         .seen = base::Cat("cluster.", job, " is no job that strategies know"),
                         .action = "they know chief, worker, ps and evaluator"});
  }
  if (local > 0 && local < all) {
    Problem("some addresses are of this machine only (localhost), others are not",
            "write names that every machine resolves alike", findings);
  }
}

void CheckTask(const Value& config, const Cluster& cluster, Findings* findings) {
  const Value* task = Member(config, "task");
  if (task == nullptr) {
    return Problem("there is no task", "add \"task\": {\"type\": \"worker\", \"index\": 0}",
                   findings);
  }
  const std::string type = TextIn(*task, "type");
  const Value* index = Member(*task, "index");
  double number = index == nullptr ? -1 : index->number_value();
  if (index != nullptr && index->kind_case() == Value::kStringValue) {
    number = static_cast<double>(ToNumber(index->string_value()).value_or(-1));
  }
  if (number < 0 || number != std::floor(number)) {
    return Problem("task.index is not a number from 0 on", "write \"index\": 0", findings);
  }
  const auto job = cluster.jobs.find(type);
  if (job == cluster.jobs.end()) {
    if (type == "evaluator") return;  // It need not be a part of the cluster.
    return Problem(base::Cat("task.type ", JsonText(type), " is not in the cluster"),
                   "write one of the cluster's jobs", findings);
  }
  if (number >= static_cast<double>(job->second.size())) {
    Problem(base::Cat("task.index is ", Fixed(number, 0), ", but there are ", job->second.size(),
                      " of ", type),
            base::Cat("write 0 to ", job->second.size() - 1), findings);
  }
}

std::string Summary(const Value& config, const Cluster& cluster) {
  std::string text;
  for (const auto& [job, addresses] : cluster.jobs) {
    text += base::Cat(text.empty() ? "" : ", ", addresses.size(), " ", job);
  }
  const Value* task = Member(config, "task");
  return base::Cat("a cluster of ", text, "; this is ",
                   task == nullptr ? "?" : TextIn(*task, "type"));
}

}  // namespace

Findings CheckTfConfig(const Machine& machine) {
  const std::string* text = machine.Variable("TF_CONFIG");
  if (text == nullptr) {
    return {
        {.id = "env.TF_CONFIG", .seen = "not set: scripts train alone; `tensord train` makes it"}};
  }
  Findings findings;
  const auto config = ParseJson(*text);
  if (!config.ok()) {
    Problem(std::string(base::Message(config.status())), "write one JSON object", &findings);
    return findings;
  }
  const Value* jobs = Member(*config, "cluster");
  if (jobs == nullptr || !jobs->has_struct_value() || jobs->struct_value().fields().empty()) {
    Problem("there is no cluster", "add \"cluster\": {\"worker\": [\"host:port\", ...]}",
            &findings);
    return findings;
  }
  Cluster cluster;
  // Sorted, because the parsed object's order is random.
  std::map<std::string, const Value*> sorted;
  for (const auto& [job, value] : jobs->struct_value().fields()) sorted.emplace(job, &value);
  for (const auto& [job, value] : sorted) ReadJob(job, *value, &cluster, &findings);
  CheckJobs(cluster, &findings);
  CheckTask(*config, cluster, &findings);
  if (findings.empty()) {
    findings.push_back({.id = "env.TF_CONFIG", .seen = Summary(*config, cluster)});
  }
  return findings;
}

}  // namespace tensord::doctor
