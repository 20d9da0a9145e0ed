// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "base/limits.h"
#include "base/sched_limits.h"
#include "base/text.h"
#include "sched/version_queue.h"

// Who may enter the queue: facts for the pure functions of admission.h, and the words of a refusal.
namespace tensord::sched {
namespace {

constexpr std::string_view kQueueFull =
    "The batch scheduling queue to which this task was submitted is full; ";

constexpr absl::Duration kSuspectsRetryAfter = absl::Seconds(1);
constexpr absl::Duration kBytesRetryAfter = absl::Milliseconds(200);
// What a call is taken to cost while its runs are not known. Only who asks for how much matters.
constexpr absl::Duration kUnknownRowCost = absl::Milliseconds(1);
constexpr uint64_t kUnknownRowBytes = 64 * 1024;

std::string Milliseconds(absl::Duration duration) {
  return base::Cat(absl::ToInt64Milliseconds(duration), " ms");
}

}  // namespace

absl::Status VersionQueue::PoisonError() const {
  return absl::InternalError(base::Cat("a call with these inputs ended two workers of ", Name(),
                                       " or more; none is run for the next ",
                                       absl::ToInt64Seconds(limits::kPoisonKept), " s"));
}

VersionQueue::Refusal VersionQueue::RefuseByContent(PoisonList::Standing standing) const {
  if (standing == PoisonList::Standing::kPoison) {
    return {PoisonError(), limits::kPoisonKept, &Stats::refused_poison};
  }
  if (standing == PoisonList::Standing::kSuspect && suspects_.size() >= limits::kPoisonsMax) {
    return {absl::ResourceExhaustedError(base::Cat("calls with these inputs were in a worker of ",
                                                   Name(), " that died; they run one by one, and ",
                                                   suspects_.size(), " wait; try again")),
            kSuspectsRetryAfter, &Stats::refused_full};
  }
  return {};
}

VersionQueue::Refusal VersionQueue::Refuse(const Call& call, uint64_t bytes) {
  const absl::Time now = timers_.Now();
  if (closed_) {
    return {absl::UnavailableError(base::Cat(Name(), " was unloaded; call again")),
            absl::ZeroDuration(), &Stats::refused_other};
  }
  if (call.deadline <= now) {
    return {absl::DeadlineExceededError(
                base::Cat("the deadline passed before the call reached ", Name())),
            absl::ZeroDuration(), &Stats::expired_queued};
  }
  if (Refusal refusal = RefuseByBatches(call); refusal.end != nullptr) return refusal;
  if (lanes_.calls() == 0) {
    Refusal refusal = RefuseHopeless(call);
    if (refusal.end != nullptr) return refusal;
    const bool trial = refusal.trial;
    refusal = RefuseByBytes(bytes);
    refusal.trial = trial;
    return refusal;
  }
  const absl::Duration cost = CostOf(call, bytes);
  FairShare& fair = fair_[static_cast<size_t>(call.criticality)];
  fair.Offer(call.client, cost, now);
  const Applicant applicant{.bytes = bytes,
                            .criticality = call.criticality,
                            .retry = call.retry,
                            .over_share = fair.OverShare(call.client, now),
                            .salt = static_cast<uint64_t>(stats_.submitted),
                            .arrived = call.arrived,
                            .deadline = call.deadline};
  Refusal refusal = RefuseByLoad(applicant, ForecastOf(call));
  if (refusal.end == nullptr) refusal = RefuseByBytes(bytes);
  if (refusal.end == nullptr) fair.Admit(cost, now);
  return refusal;
}

// For a call that finds nothing waiting.
VersionQueue::Refusal VersionQueue::RefuseHopeless(const Call& call) {
  if (!call.more_signatures.empty() || workers_.executors() == 0) return {};
  SignaturePolicy& policy = policies_[static_cast<size_t>(call.signature)];
  const absl::Time now = timers_.Now();
  const Applicant applicant{.salt = static_cast<uint64_t>(stats_.submitted),
                            .arrived = call.arrived,
                            .deadline = call.deadline};
  const Outlook outlook{.least = policy.LeastRunOf(call.rows),
                        .idle = workers_.idle() > 0,
                        .trial_last = policy.trial_last()};
  const Admission admission = AdmitAtOnce(applicant, outlook, now);
  if (admission.verdict == Verdict::kAdmit) {
    if (admission.trial) policy.NoteTrial(now);
    return {.trial = admission.trial};
  }
  return LateRefusal({.run = *outlook.least}, call.deadline, admission.retry_after);
}

VersionQueue::Refusal VersionQueue::LateRefusal(const Forecast& forecast, absl::Time deadline,
                                                absl::Duration after) const {
  const bool waits = forecast.wait > absl::ZeroDuration();
  return {absl::ResourceExhaustedError(base::Cat(
              Name(), waits ? " is overloaded" : " is too slow for this call",
              ": the answer would come in about ", Milliseconds(forecast.wait + forecast.run),
              ", the deadline is in ", Milliseconds(deadline - timers_.Now()), "; try again in ",
              Milliseconds(after))),
          after, &Stats::refused_late};
}

// Takes the bytes if it does not refuse.
VersionQueue::Refusal VersionQueue::RefuseByBytes(uint64_t bytes) {
  if (options_.model_bytes == nullptr || options_.model_bytes->TryTake(bytes)) return {};
  return {absl::ResourceExhaustedError(base::Cat(
              "the calls of model ", options_.model, " hold ", options_.model_bytes->used(),
              " bytes, all of the memory for requests that one model may have; try "
              "again")),
          kBytesRetryAfter, &Stats::refused_full};
}

VersionQueue::Refusal VersionQueue::RefuseByLoad(const Applicant& call,
                                                 const std::optional<Forecast>& forecast) const {
  const absl::Time now = timers_.Now();
  const Fullness queue{.calls = lanes_.calls(),
                       .calls_max = options_.queued_calls_max,
                       .bytes = lanes_.bytes(),
                       .bytes_max = options_.queued_bytes_max};
  const Admission admission = Admit(call, queue, forecast, now);
  const absl::Duration after = admission.retry_after;
  switch (admission.verdict) {
    case Verdict::kAdmit:
      return {};
    case Verdict::kFull: {
      const bool down = workers_.live() == 0;
      return {
          absl::Status(down ? absl::StatusCode::kUnavailable : absl::StatusCode::kResourceExhausted,
                       base::Cat("the queue of ", Name(), " is full (", queue.calls, " calls, ",
                                 queue.bytes, " bytes wait", down ? ", no worker is ready" : "",
                                 "); try again in ", Milliseconds(after))),
          after, &Stats::refused_full};
    }
    case Verdict::kLate:
      return LateRefusal(*forecast, call.deadline, after);
    case Verdict::kShed:
      return {absl::ResourceExhaustedError(base::Cat(Name(), " is under pressure and lets go of ",
                                                     call.retry ? "retries" : "sheddable calls",
                                                     " first; try again in ", Milliseconds(after))),
              after, &Stats::refused_shed};
    case Verdict::kOverShare:
      return {absl::ResourceExhaustedError(
                  base::Cat(Name(),
                            " is under pressure, and this client has its share of it: what "
                            "is left is for others; try again in ",
                            Milliseconds(after))),
              after, &Stats::refused_share};
  }
  return {};
}

// The limits that an operator set, in the original's words.
VersionQueue::Refusal VersionQueue::RefuseByBatches(const Call& call) {
  const SignaturePolicy& policy = policies_[static_cast<size_t>(call.signature)];
  if (!options_.batching.has_value() || !policy.batches()) return {};
  const BatchingParameters& set = *options_.batching;
  if (set.max_batch_size.has_value() && call.rows > *set.max_batch_size) {
    return {absl::InvalidArgumentError(base::Cat("Task size ", call.rows,
                                                 " is larger than maximum input batch size ",
                                                 *set.max_batch_size, " of ", Name())),
            absl::ZeroDuration(), &Stats::refused_other};
  }
  if (!set.max_enqueued_batches.has_value()) return {};
  const int64_t batches_max = std::max<int64_t>(1, *set.max_enqueued_batches);
  if (lanes_.calls() < batches_max && !set.enable_large_batch_splitting) return {};
  const int64_t rows_max = policy.RowsCap();
  const CallLane& own = LaneOf(call, false);
  int64_t batches = 0;
  int64_t room = 0;
  for (const CallLane* lane : lanes_.active()) {
    if (lane->signature() != call.signature) continue;
    const OpenBatches open = CountBatches(lane->calls(), lane->alone() ? 1 : rows_max);
    batches += open.batches;
    if (lane == &own) room = open.room;
  }
  const int64_t rows = std::max<int64_t>(1, call.rows);
  const int64_t free = std::max<int64_t>(0, batches_max - batches);
  const bool fits =
      set.enable_large_batch_splitting ? rows <= free * rows_max + room : rows <= room || free > 0;
  if (fits) return {};
  const std::string words =
      set.enable_large_batch_splitting
          ? base::Cat("task size is ", call.rows, " but scheduling capacity is only ",
                      free * rows_max + room, " (num_enqueued_batches=", batches,
                      ", max_enqueued_batches=", batches_max,
                      ", max_execution_batch_size=", rows_max, ")")
          : base::Cat("currently ", batches, " batches enqueued and max_enqueued_batches is ",
                      batches_max);
  return {absl::UnavailableError(base::Cat(kQueueFull, words, "; try again")), absl::ZeroDuration(),
          &Stats::refused_full};
}

// Of the executors' time together, about.
absl::Duration VersionQueue::CostOf(const Call& call, uint64_t bytes) const {
  const SignaturePolicy& policy = policies_[static_cast<size_t>(call.signature)];
  const int64_t rows = std::max<int64_t>(1, call.rows);
  const int64_t run_rows = std::max(rows, policy.RowsCap());
  const auto run = policy.service().Mean(run_rows);
  const absl::Duration cost =
      run.has_value()
          ? *run * (static_cast<double>(rows) / static_cast<double>(run_rows))
          : kUnknownRowCost * (static_cast<double>(rows) +
                               static_cast<double>(bytes) / static_cast<double>(kUnknownRowBytes));
  return cost / std::max<int64_t>(1, workers_.executors());
}

// When the call would be through if it were queued now; nullopt when that is not known or cannot
// matter.
std::optional<Forecast> VersionQueue::ForecastOf(const Call& call) {
  const absl::Time now = timers_.Now();
  if (call.deadline - now > limits::kPredictionReach) return std::nullopt;
  const int64_t executors = workers_.executors();
  if (executors == 0) return std::nullopt;
  const SignaturePolicy& policy = policies_[static_cast<size_t>(call.signature)];
  const CallLane& lane = LaneOf(call, false);
  int64_t rows = std::max<int64_t>(1, call.rows);
  if (!lane.alone()) rows = std::max(rows, std::min(policy.RowsCap(), lane.rows() + rows));
  const std::optional<absl::Duration> run = policy.service().P95(rows);
  if (!run.has_value()) return std::nullopt;
  const absl::Time turn = fair_[static_cast<size_t>(call.criticality)].Turn(call.client, now);
  const Pending place{.criticality = call.criticality,
                      .arrived = call.arrived,
                      .due = DueTime(turn, call.deadline)};
  return Forecast{.wait = WorkBefore(place) / executors, .run = *run};
}

fleet::ReceivePlace VersionQueue::LeaseForReceive(uint64_t bytes) {
  if (lanes_.calls() > 0 || closed_) return {};
  WorkerSlot* const slot = workers_.PickIdle();
  return slot == nullptr ? fleet::ReceivePlace{} : slot->worker->LeaseForReceive(bytes);
}

std::optional<CallResult> VersionQueue::RefuseEarly(const EarlyCall& call) {
  const absl::Time now = timers_.Now();
  if (lanes_.calls() == 0 || closed_ || call.deadline <= now) return std::nullopt;
  FairShare& fair = fair_[static_cast<size_t>(call.criticality)];
  const Applicant applicant{.bytes = call.bytes,
                            .criticality = call.criticality,
                            .retry = call.retry,
                            .over_share = fair.OverShare(call.client, now),
                            .salt = static_cast<uint64_t>(stats_.submitted),
                            .arrived = call.arrived,
                            .deadline = call.deadline};
  std::optional<Forecast> forecast;
  const int64_t executors = workers_.executors();
  if (executors > 0 && call.deadline - now <= limits::kPredictionReach) {
    const Pending place{.criticality = call.criticality,
                        .arrived = call.arrived,
                        .due = DueTime(fair.Turn(call.client, now), call.deadline)};
    // Which signature it is for stands in the body: the quickest, perhaps.
    absl::Duration run = absl::InfiniteDuration();
    for (const SignaturePolicy& policy : policies_) {
      run = std::min(run, policy.service().P95(1).value_or(absl::ZeroDuration()));
    }
    forecast = Forecast{.wait = WorkBefore(place) / executors, .run = run};
  }
  Refusal refusal = RefuseByLoad(applicant, forecast);
  if (refusal.end == nullptr) return std::nullopt;
  // Of its demand no more is known than its bytes.
  fair.Offer(call.client, CostOf({.signature = 0}, call.bytes), now);
  ++stats_.submitted;
  ++stats_.refused_early;
  ++(stats_.*refusal.end);
  return CallResult{.status = std::move(refusal.status), .retry_after = refusal.retry_after};
}

// Executor time until a call that were queued now would start, as far as it is known: what is left
// of the runs that are out, should they take as long as nearly all do at most, and what is served
// before it.
absl::Duration VersionQueue::WorkBefore(const Pending& call) const {
  const absl::Time now = timers_.Now();
  absl::Duration work;
  for (const Batch* batch : running_) {
    const ServiceTime& service = policies_[static_cast<size_t>(batch->signature)].service();
    const auto run = service.P95(std::max<int64_t>(1, batch->rows + batch->pad_rows));
    if (run.has_value()) work += std::max(absl::ZeroDuration(), batch->started + *run - now);
  }
  for (const CallLane* lane : lanes_.active()) {
    const SignaturePolicy& policy = policies_[static_cast<size_t>(lane->signature())];
    const auto before = static_cast<double>(lane->CallsBefore(call));
    const auto calls = static_cast<double>(lane->calls().size());
    const double rows = static_cast<double>(lane->rows()) * before / calls;
    const int64_t run_rows = lane->alone()
                                 ? std::max<int64_t>(1, lane->rows() / static_cast<int64_t>(calls))
                                 : policy.RowsCap();
    const auto mean = policy.service().Mean(run_rows);
    if (mean.has_value()) work += *mean * (rows / static_cast<double>(run_rows));
  }
  return work;
}

}  // namespace tensord::sched
