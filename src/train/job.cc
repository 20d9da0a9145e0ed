// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/job.h"

#include <signal.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/text.h"
#include "train/failure.h"
#include "train/limits.h"
#include "train/preflight.h"

namespace tensord::train {
namespace {

// A script's way to say "start me again": PreemptionCheckpointHandler's codes.
bool AsksForRestart(const RankEnd& end) {
  return !end.by_us && end.signal == 0 && (end.code == 42 || end.code == 143);
}

int CodeOf(const RankEnd& end) { return end.signal != 0 ? 128 + end.signal : end.code; }

std::string Seconds(absl::Duration wait) {
  return base::Cat(absl::ToInt64Seconds(absl::Ceil(wait, absl::Seconds(1))), " s");
}

}  // namespace

Job::Job(Policy policy, absl::Time now) : policy_(std::move(policy)), now_(now) {
  wake_ = now + policy_.join_wait;
}

std::vector<Action> Job::On(const Event& event, absl::Time now) {
  now_ = now;
  if (phase_ == Phase::kOver) return {};
  if (const auto* from = std::get_if<FromNode>(&event)) {
    if (const auto* joined = std::get_if<Joined>(&from->report)) {
      Handle(from->node, *joined, from->clock_ms);
    } else {
      std::visit(
          [&](const auto& report) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(report)>, Joined>) {
              Handle(from->node, report);
            }
          },
          from->report);
    }
  } else if (const auto* lost = std::get_if<NodeLost>(&event)) {
    Lose(*lost);
  } else if (const auto* stop = std::get_if<StopRequested>(&event)) {
    Stop(stop->signal);
  } else if (now_ >= wake_) {
    OnTime();
  }
  return std::exchange(actions_, {});
}

// ---- Meeting ------------------------------------------------------------------------------------

void Job::Handle(NodeId node, const Joined& joined, int64_t clock_ms) {
  if (Find(node) != nullptr) return;
  if (joined.ranks < 1 || joined.ranks > limits::kRanksPerNodeMax) return;
  if (nodes_.size() >= static_cast<size_t>(limits::kNodesMax)) return;
  nodes_.push_back({.id = node, .joined = joined});
  nodes_.back().joined.facts.clock_ms -= clock_ms;  // From here on: how far it is off.
  if (policy_.nodes_max > 1) {
    const bool spare = static_cast<int>(nodes_.size()) > policy_.nodes_max;
    SayInfo(base::Cat(joined.facts.host, " (", joined.address, ") is here with ", joined.ranks,
                      " ranks: ",
                      spare ? std::string("a spare, in case another one is lost")
                            : base::Cat(nodes_.size(), " of ", policy_.nodes_max, " machines")));
  }
  if (phase_ != Phase::kGathering) return;
  if (policy_.nodes_min < policy_.nodes_max &&
      static_cast<int>(nodes_.size()) == policy_.nodes_min) {
    wake_ = std::min(wake_, now_ + limits::kLastCall);
  }
  MaybePrepare();
}

void Job::Gather(absl::Duration wait) {
  phase_ = Phase::kGathering;
  const int count = static_cast<int>(nodes_.size());
  const bool enough = policy_.nodes_min < policy_.nodes_max && count >= policy_.nodes_min;
  wake_ = now_ + (enough ? std::min(wait, limits::kLastCall) : wait);
  for (Node& node : nodes_) node.in_generation = false;
  MaybePrepare();
}

void Job::MaybePrepare() {
  const int count = static_cast<int>(nodes_.size());
  const bool full = count >= policy_.nodes_max;
  if (!full && (count < policy_.nodes_min || now_ < wake_)) return;
  // The order is the same each time the same machines meet, and the leader's stays first.
  std::stable_sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) {
    const auto key = [](const Node& n) {
      const int wish =
          n.joined.node_rank < 0 ? std::numeric_limits<int>::max() : n.joined.node_rank;
      return std::tuple(n.id == 0 ? 0 : 1, wish, n.joined.facts.host, n.joined.address);
    };
    return key(a) < key(b);
  });
  int ranks = 0;
  for (Node& node : nodes_) {
    node.in_generation = &node - nodes_.data() < policy_.nodes_max;  // The others are spares.
    if (!node.in_generation) continue;
    node.answered = false;
    node.gone = true;
    node.first_rank = ranks;
    ranks += node.joined.ranks;
  }
  auto tasks = TasksOf(policy_.mode, ranks, policy_.parameter_servers);
  if (!tasks.ok()) return Finish(2, std::string(base::Message(tasks.status())));
  tasks_ = *std::move(tasks);
  std::vector<NodeFacts> facts;
  for (const Node* node : Members()) facts.push_back(node->joined.facts);
  const Findings findings = CompareNodes(facts);
  for (const std::string& text : findings.warnings) {
    actions_.emplace_back(Say{Severity::kWarning, text});
  }
  if (!findings.errors.empty()) {
    for (const std::string& text : findings.errors) SayError(text);
    return Finish(1, "the machines do not fit together");
  }
  ++generation_;
  phase_ = Phase::kPreparing;
  wake_ = now_ + policy_.join_wait;
  ToAll(Prepare{generation_});
}

void Job::Handle(NodeId id, const Ready& ready) {
  Node* node = Find(id);
  if (phase_ != Phase::kPreparing || ready.generation != generation_ || node == nullptr) return;
  if (!ready.error.empty()) {
    return Finish(1, base::Cat(node->joined.facts.host, ": ", ready.error));
  }
  if (static_cast<int>(ready.ports.size()) != node->joined.ranks) {
    return Finish(1, base::Cat(node->joined.facts.host, " reserved ", ready.ports.size(),
                               " ports for ", node->joined.ranks, " ranks"));
  }
  node->ports = ready.ports;
  node->answered = true;
  if (AllAnswered()) AfterPorts();
}

void Job::AfterPorts() {
  addresses_.clear();
  for (Node* node : Members()) {
    for (const std::string& port : node->ports) {
      const std::string& host = node->joined.address;
      addresses_.push_back(host.find(':') == std::string::npos ? base::Cat(host, ":", port)
                                                               : base::Cat("[", host, "]:", port));
    }
    node->answered = false;
  }
  if (Members().size() < 2) {
    if (policy_.check_only) return Finish(0, "check: this machine is ready");
    return StartAll();
  }
  phase_ = Phase::kProbing;
  ToAll(Probe{generation_, addresses_});
}

void Job::Handle(NodeId id, const Probed& probed) {
  Node* node = Find(id);
  if (phase_ != Phase::kProbing || probed.generation != generation_ || node == nullptr) return;
  node->answered = true;
  node->marks = probed.marks;
  if (!probed.unreachable.empty()) {
    for (const std::string& pair : probed.unreachable) {
      SayError(base::Cat("from ", node->joined.facts.host, " (", node->joined.address,
                         ") nobody reaches ", pair));
    }
    return Finish(1,
                  "machines do not reach each other: open these ports between them "
                  "(TensorFlow uses a new one a rank and start), or give --address");
  }
  if (!AllAnswered()) return;
  CheckMarks();
  if (phase_ == Phase::kOver) return;
  if (policy_.check_only) {
    return Finish(
        0, base::Cat("check: ", Members().size(), " machines with ", ranks(), " ranks are ready"));
  }
  StartAll();
}

void Job::CheckMarks() {
  for (const Node* writer : Members()) {
    const std::string& mark = writer->joined.facts.checkpoint_mark;
    if (mark.empty()) continue;
    for (const Node* reader : Members()) {
      if (std::find(reader->marks.begin(), reader->marks.end(), mark) != reader->marks.end()) {
        continue;
      }
      SayError(base::Cat(reader->joined.facts.host, " does not see what ",
                         writer->joined.facts.host, " wrote into the checkpoint directory"));
      return Finish(1, "--checkpoint-dir must be one folder that all machines share");
    }
  }
}

// ---- Running ------------------------------------------------------------------------------------

void Job::StartAll() {
  phase_ = Phase::kRunning;
  wake_ = absl::InfiniteFuture();
  started_ = now_;
  ends_.clear();
  stuck_.clear();
  lost_.clear();
  const std::vector<Node*> members = Members();
  for (size_t i = 0; i < members.size(); ++i) {
    members[i]->gone = false;
    actions_.emplace_back(
        Tell{members[i]->id, StartRanks{.generation = generation_,
                                        .restarts = restarts_,
                                        .first_rank = members[i]->first_rank,
                                        .node = static_cast<int>(i),
                                        .nodes = static_cast<int>(members.size()),
                                        .mode = policy_.mode,
                                        .parameter_servers = policy_.parameter_servers,
                                        .run_id = policy_.run_id,
                                        .addresses = addresses_}});
  }
  SayInfo(base::Cat("start ", generation_, ": ", ranks(), ranks() == 1 ? " rank on " : " ranks on ",
                    members.size(), members.size() == 1 ? " machine" : " machines"));
}

void Job::Handle(NodeId, const RankEnded& ended) {
  const int rank = ended.end.rank;
  if (ended.generation != generation_ || rank < 0 || rank >= ranks()) return;
  ends_[rank] = ended.end;
  if (phase_ != Phase::kRunning) return;
  if (!ended.end.ok()) return Failed(ended.end);
  const bool servers_remain = policy_.mode == Mode::kParameterServer && rank == 0;
  if ((policy_.success_on_chief && rank == 0) || servers_remain) {
    SayInfo(base::Cat(NameOf(0), " has ended well; the others are told to stop"));
    StopAll(SIGTERM, policy_.grace);
  }
}

void Job::Failed(const RankEnd& end) {
  if (AsksForRestart(end)) {
    SayInfo(base::Cat(NameOf(end.rank), " asks to be started again (", HowItEnded(end), ")"));
    // The others save the same step and end by themselves.
    return StopAll(0, policy_.grace);
  }
  SayError(base::Cat(NameOf(end.rank), " failed: ", HowItEnded(end), "; the others are stopped"));
  StopAll(SIGTERM, policy_.grace);
}

void Job::Handle(NodeId, const RankStuck& stuck) {
  if (stuck.generation != generation_ || phase_ != Phase::kRunning) return;
  if (stuck.perhaps_at_work) {
    actions_.emplace_back(
        Say{Severity::kWarning,
            base::Cat(NameOf(stuck.rank), " ", stuck.why,
                      ". No step of any rank was seen, so it may be at work and goes on; with "
                      "--hang-timeout SECONDS such a silence ends the job")});
    return;
  }
  stuck_ = base::Cat(NameOf(stuck.rank), " ", stuck.why);
  SayError(base::Cat(stuck_, "; the Python stacks of all ranks follow"));
  phase_ = Phase::kDumping;
  wake_ = now_ + limits::kDumpWait;
  ToAll(DumpStacks{generation_});
}

void Job::StopAll(int signal, absl::Duration grace) {
  phase_ = Phase::kStopping;
  wake_ = absl::InfiniteFuture();
  ToAll(StopRanks{generation_, signal, absl::ToInt64Milliseconds(grace)});
  if (AllGone()) Decide();
}

void Job::Handle(NodeId id, const RanksGone& gone) {
  Node* node = Find(id);
  if (gone.generation != generation_ || node == nullptr || node->gone) return;
  node->gone = true;
  if (AllGone()) Decide();
}

void Job::Lose(const NodeLost& lost) {
  Node* node = Find(lost.node);
  if (node == nullptr) return;
  const std::string name = base::Cat(node->joined.facts.host, " (", node->joined.address, ")");
  const bool member = node->in_generation;
  nodes_.erase(nodes_.begin() + (node - nodes_.data()));
  SayError(base::Cat("the machine ", name, " is lost: ", lost.why));
  if (!member) return;
  switch (phase_) {
    case Phase::kPreparing:
    case Phase::kProbing:
      return Gather(policy_.join_wait);
    case Phase::kRunning:
    case Phase::kDumping:
      lost_ = name;
      return StopAll(SIGTERM, policy_.grace);
    case Phase::kStopping:
      if (AllGone()) Decide();
      return;
    default:
      return;
  }
}

void Job::Stop(int signal) {
  ++stops_;
  if (stop_signal_ == 0) stop_signal_ = signal;
  switch (phase_) {
    case Phase::kRunning:
    case Phase::kDumping:
    case Phase::kStopping:
      if (stops_ > 1) {
        SayInfo("stopping at once");
        return StopAll(SIGKILL, absl::ZeroDuration());
      }
      SayInfo(base::Cat("told to stop; the ranks have ", Seconds(policy_.grace)));
      return StopAll(signal, policy_.grace);
    default:
      return Finish(128 + stop_signal_, "told to stop");
  }
}

void Job::OnTime() {
  wake_ = absl::InfiniteFuture();
  switch (phase_) {
    case Phase::kGathering: {
      if (static_cast<int>(nodes_.size()) >= policy_.nodes_min) {
        wake_ = now_;
        return MaybePrepare();
      }
      std::string here;
      for (const Node& node : nodes_) {
        here += base::Cat(here.empty() ? "" : ", ", node.joined.facts.host);
      }
      return Finish(
          1, base::Cat(policy_.nodes_min - static_cast<int>(nodes_.size()), " of ",
                       policy_.nodes_min, " machines did not come within ",
                       Seconds(policy_.join_wait), "; here: ", here.empty() ? "none" : here));
    }
    case Phase::kPreparing:
    case Phase::kProbing:
      return Finish(1,
                    base::Cat("not all machines were ready within ", Seconds(policy_.join_wait)));
    case Phase::kDumping:
      return StopAll(SIGTERM, policy_.grace);
    case Phase::kBackoff:
      return Gather(policy_.join_wait);
    default:
      return;
  }
}

// ---- The end of a generation --------------------------------------------------------------------

void Job::Decide() {
  if (stop_signal_ != 0) return Finish(128 + stop_signal_, "stopped");
  std::vector<RankEnd> ends;
  for (const auto& [rank, end] : ends_) ends.push_back(end);
  const bool chief_decides = policy_.success_on_chief || policy_.mode == Mode::kParameterServer;
  const auto chief = ends_.find(0);
  const bool chief_well = chief != ends_.end() && chief->second.ok() && !chief->second.by_us;
  const bool all_well =
      static_cast<int>(ends.size()) == ranks() &&
      std::all_of(ends.begin(), ends.end(), [](const RankEnd& end) { return end.ok(); });
  const bool undisturbed = stuck_.empty() && lost_.empty();
  if (undisturbed && (all_well || (chief_decides && chief_well))) return Finish(0, "");
  const int cause = FindCause(ends);
  const RankEnd* first = cause < 0 ? nullptr : &ends_.at(cause);
  if (first == nullptr || !AsksForRestart(*first)) {
    if (undisturbed) actions_.emplace_back(Print{FailureSummary(ends, tasks_)});
  }
  if (now_ - started_ >= policy_.healthy_after) counted_restarts_ = failures_in_row_ = 0;
  DecideAfterFailure(first);
}

void Job::DecideAfterFailure(const RankEnd* cause) {
  if (!stuck_.empty()) return Restart(stuck_, true, 1);
  if (!lost_.empty()) return Restart(base::Cat("lost ", lost_), true, 1);
  if (cause == nullptr) return Restart("ranks are gone without a word", true, 1);
  const std::string what = base::Cat(NameOf(cause->rank), ": ", HowItEnded(*cause));
  if (AsksForRestart(*cause)) return Restart(what, false, cause->code);
  const bool stolen =
      std::any_of(ends_.begin(), ends_.end(), [](const auto& at) { return at.second.port_stolen; });
  stolen_ports_ = stolen ? stolen_ports_ + 1 : 0;
  if (stolen && stolen_ports_ <= limits::kStolenPortTriesMax) {
    return Restart("a reserved port was taken; new ones are used", false, CodeOf(*cause));
  }
  if (!policy_.restart_on_any && CodeOf(*cause) < 128) {
    return Finish(CodeOf(*cause), base::Cat(what, ": not restarted (--restart-on signals)"));
  }
  Restart(what, true, CodeOf(*cause));
}

void Job::Restart(const std::string& why, bool counts, int code) {
  if (counts && counted_restarts_ >= policy_.restarts_max) {
    return Finish(code, base::Cat(why, policy_.restarts_max == 0
                                           ? std::string("; --max-restarts would start it again")
                                           : base::Cat("; all ", policy_.restarts_max,
                                                       " restarts are used up")));
  }
  if (counts) ++counted_restarts_;
  ++restarts_;
  absl::Duration wait = limits::kBackoffFirst;
  for (int i = 0; i < failures_in_row_ && wait < limits::kBackoffMax; ++i) wait *= 2;
  wait = std::min(wait, limits::kBackoffMax);
  failures_in_row_ = counts ? failures_in_row_ + 1 : 0;
  SayInfo(base::Cat(
      "restart ", restarts_,
      counts ? base::Cat(" (", counted_restarts_, " of ", policy_.restarts_max, " counted)")
             : std::string(" (not counted)"),
      " in ", Seconds(wait), ": ", why));
  phase_ = Phase::kBackoff;
  wake_ = now_ + wait;
}

void Job::Finish(int code, const std::string& words) {
  phase_ = Phase::kOver;
  wake_ = absl::InfiniteFuture();
  if (!words.empty()) {
    actions_.emplace_back(Say{code == 0 ? Severity::kInfo : Severity::kError, words});
  }
  for (const Node& node : nodes_) actions_.emplace_back(Tell{node.id, train::Finish{code, words}});
  actions_.emplace_back(End{code});
}

// ---- Parts --------------------------------------------------------------------------------------

void Job::ToAll(const Command& command) {
  for (const Node* node : Members()) actions_.emplace_back(Tell{node->id, command});
}

bool Job::AllAnswered() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const Node& node) { return !node.in_generation || node.answered; });
}

bool Job::AllGone() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const Node& node) { return !node.in_generation || node.gone; });
}

std::string Job::NameOf(int rank) const {
  if (rank < 0 || rank >= ranks()) return base::Cat("rank ", rank);
  return TaskName(tasks_[static_cast<size_t>(rank)]);
}

Job::Node* Job::Find(NodeId id) {
  const auto at =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.id == id; });
  return at == nodes_.end() ? nullptr : &*at;
}

std::vector<Job::Node*> Job::Members() {
  std::vector<Node*> members;
  for (Node& node : nodes_) {
    if (node.in_generation) members.push_back(&node);
  }
  return members;
}

}  // namespace tensord::train
