// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// The scheduler in a world where everything goes wrong: bursts, slow runs, cancels, odd and deadly
// calls, workers that die and come back, drains, forced ends. One thread, one seed, no real time.
//
//   sched_sim [--seeds=1000] [--seed=N] [--verbose]

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "loop/testing/fake_timers.h"
#include "sched/testing/fake_worker.h"
#include "sched/testing/sched_fixtures.h"
#include "sched/version_queue.h"

namespace tensord::sched {
namespace {

// Signature 0 keeps rows apart: y = x + 0.5.
constexpr int kSignatureStrings = 1;  // Keeps rows apart: y = x + "!".
constexpr int kSignatureSum = 2;      // Looks batchable, but gives one sum for all rows.
constexpr int kSignatureFixed = 3;    // Says that it has no open rows: y = x + 0.5.
constexpr int kSignatures = 4;
constexpr int kRowsPerCall = 32;  // At most; a call's values are number * kRowsPerCall + row.

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int Below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  int Between(int low, int high) { return low + Below(high - low + 1); }
  bool Chance(int percent) { return Below(100) < percent; }
  absl::Duration Exponential(absl::Duration mean) {
    return -std::log(1 - std::uniform_real_distribution<double>()(engine_)) * mean;
  }

 private:
  std::mt19937_64 engine_;
};

enum class Kind : uint8_t { kGood, kOdd, kDeadly };

// What the client of one call knows about it.
struct ClientCall {
  int number = 0;
  CallId id = 0;
  int signature = 0;
  Kind kind = Kind::kGood;
  OwnedViews inputs;
  int64_t rows = 1;
  absl::Time arrived;
  absl::Time deadline;
  bool cancelled = false;
  int answers = 0;
  int runs = 0;
};

class World {
 public:
  World(uint64_t seed, bool verbose) : random_(seed), verbose_(verbose) { Choose(); }

  // Empty, or what went wrong.
  std::string Run() {
    while (error_.empty() && timers_.Now() < End() && timers_.RunNext()) {
    }
    Finish();
    for (int i = 0; i < 10'000'000 && error_.empty() && timers_.RunNext(); ++i) {
    }
    if (error_.empty()) CheckEnd();
    return error_;
  }
  int64_t calls() const { return static_cast<int64_t>(calls_.size()); }
  const Stats& stats() const { return stats_; }

 private:
  static absl::Time End() { return absl::UnixEpoch() + absl::Seconds(2); }

  void Fail(std::string what) {
    if (error_.empty()) {
      error_ = base::Cat("at ", absl::ToInt64Milliseconds(timers_.Now() - absl::UnixEpoch()),
                         " ms: ", what);
    }
  }
  void Say(std::string_view what, int64_t number) {
    if (!verbose_) return;
    std::printf("%9.3f ms %.*s %lld\n",
                absl::ToDoubleMilliseconds(timers_.Now() - absl::UnixEpoch()),
                static_cast<int>(what.size()), what.data(), static_cast<long long>(number));
  }

  // ---- The world's settings ------------------------------------------------------------------

  void Choose() {
    QueueOptions options;
    options.model = "sim";
    options.version = 1;
    options.signatures = {{1, SignatureRows::Open::kYes},
                          {1, SignatureRows::Open::kYes},
                          {1, SignatureRows::Open::kYes},
                          {1, SignatureRows::Open::kNo}};
    options.stateful = stateful_ = random_.Chance(10);
    options.rows_max = rows_max_ = random_.Between(1, 16);
    if (random_.Chance(20)) options.queued_calls_max = random_.Between(2, 40);
    if (random_.Chance(10)) options.queued_bytes_max = 400;
    if (random_.Chance(35)) options.batching = batching_ = ChooseBatching();
    queue_ = std::make_unique<VersionQueue>(timers_, std::move(options));
    odd_percent_ = random_.Chance(50) ? random_.Below(8) : 0;
    deadly_percent_ = random_.Chance(40) ? random_.Between(1, 2) : 0;
    random_deaths_ = random_.Chance(30);
    burst_ = random_.Between(1, 20);
    gap_ = absl::Milliseconds(random_.Between(2, 60));
    slow_percent_ = random_.Chance(30) ? 5 : 0;
    fixed_ = absl::Microseconds(random_.Between(0, 5000));
    per_row_ = absl::Microseconds(random_.Between(1, 2000));
    const int workers = stateful_ ? 1 : random_.Between(1, 3);
    for (int i = 0; i < workers; ++i) StartWorker();
    Later(absl::ZeroDuration(), [this] { Arrive(); });
    if (random_deaths_) Later(random_.Exponential(absl::Milliseconds(300)), [this] { Kill(); });
  }

  BatchingParameters ChooseBatching() {
    BatchingParameters set;
    if (random_.Chance(70)) set.max_batch_size = random_.Between(1, 24);
    if (random_.Chance(50)) set.batch_timeout = absl::Milliseconds(random_.Below(20));
    if (random_.Chance(30)) set.max_enqueued_batches = random_.Between(1, 5);
    if (random_.Chance(30)) set.num_batch_threads = random_.Between(1, 3);
    if (set.max_batch_size.has_value() && random_.Chance(40)) {
      set.enable_large_batch_splitting = true;
      if (random_.Chance(50)) set.max_execution_batch_size = random_.Between(1, 8);
    }
    if (random_.Chance(40)) {
      const auto last = set.ExecutionRowsMax().value_or(16);
      for (int64_t size = 1; size < last; size *= 3) set.allowed_batch_sizes.push_back(size);
      set.allowed_batch_sizes.push_back(last);
    }
    return set;
  }

  void Later(absl::Duration wait, loop::Task task) {
    timers_.At(timers_.Now() + wait, std::move(task));
  }

  // ---- Clients -------------------------------------------------------------------------------

  void Arrive() {
    if (finishing_) return;
    for (int i = random_.Between(1, burst_); i > 0; --i) Call();
    Later(random_.Exponential(gap_), [this] { Arrive(); });
  }

  void Call() {
    const int number = static_cast<int>(calls_.size());
    ClientCall& call = calls_.emplace_back(std::make_unique<ClientCall>()).operator*();
    call.number = number;
    call.signature = random_.Below(kSignatures);
    call.rows = random_.Chance(80) ? random_.Between(1, 3) : random_.Between(0, kRowsPerCall);
    call.kind = call.rows == 0                    ? Kind::kGood  // No row could tell.
                : random_.Chance(deadly_percent_) ? Kind::kDeadly
                : random_.Chance(odd_percent_)    ? Kind::kOdd
                                                  : Kind::kGood;
    call.inputs = Payload(call);
    call.arrived = timers_.Now();
    call.deadline = Deadline();
    Say("call", number);
    inside_submit_ = true;
    const tensor::Criticality classes[] = {
        tensor::Criticality::kCritical, tensor::Criticality::kCritical,
        tensor::Criticality::kSheddable, tensor::Criticality::kCriticalPlus};
    sched::Call request{.signature = call.signature,
                        .inputs = call.inputs.tensors,
                        .keep = call.inputs.keep,
                        .rows = call.rows,
                        .arrived = call.arrived,
                        .deadline = call.deadline,
                        .criticality = classes[random_.Below(4)],
                        .retry = random_.Chance(10),
                        .client = static_cast<ClientBucket>(random_.Below(3)),
                        .done = [this, number](CallResult result) {
                          Answered(*calls_[static_cast<size_t>(number)], result);
                        }};
    if (random_.Chance(50)) {
      call.id = queue_->Submit(std::move(request));
    } else {
      call.id = queue_->Add(std::move(request));
      Later(absl::ZeroDuration(), [this] {
        if (queue_ != nullptr) queue_->Dispatch();
      });
    }
    inside_submit_ = false;
    // The queue keeps the bytes alive; the client lets go. Its own copy is for the check.
    call.inputs = Payload(call);
    if (random_.Chance(10)) {
      Later(random_.Exponential(absl::Milliseconds(10)), [this, number] { Cancel(number); });
    }
  }

  absl::Time Deadline() {
    if (random_.Chance(40)) return timers_.Now() + absl::Hours(1);
    if (random_.Chance(10)) return absl::InfiniteFuture();
    return timers_.Now() + absl::Milliseconds(random_.Below(120));
  }

  void Cancel(int number) {
    ClientCall& call = *calls_[static_cast<size_t>(number)];
    if (queue_ == nullptr || call.answers > 0) return;
    Say("cancel", number);
    call.cancelled = true;
    queue_->Cancel(call.id);
  }

  OwnedViews Payload(const ClientCall& call) const {
    if (call.signature == kSignatureStrings) {
      std::vector<std::string> values;
      for (int64_t row = 0; row < call.rows; ++row) {
        values.push_back(base::Cat(call.number, ":", row));
      }
      return Strings({call.rows, 1}, values);
    }
    const int64_t columns = 1 + call.number % 2;  // Two shapes of rows.
    OwnedViews numbers = Floats({call.rows, columns}, 0);
    auto values = std::make_shared<std::vector<float>>();
    for (int64_t row = 0; row < call.rows; ++row) {
      const auto value = static_cast<float>(call.number * kRowsPerCall + row);
      values->insert(values->end(), static_cast<size_t>(columns), value);
    }
    numbers.tensors[0].bytes = std::as_bytes(std::span<const float>(*values));
    numbers.keep = std::move(values);
    return numbers;
  }

  void Answered(ClientCall& call, const CallResult& result) {
    Say(result.status.ok() ? "ok" : result.status.ToString(), call.number);
    if (inside_submit_) Fail("done ran inside Submit");
    if (++call.answers > 1) Fail(base::Cat("call ", call.number, " was answered twice"));
    if (call.cancelled) Fail(base::Cat("call ", call.number, " was answered after its cancel"));
    if (timers_.Now() > std::max(call.arrived, call.deadline)) {
      Fail(base::Cat("call ", call.number, " was answered after its deadline"));
    }
    CheckStatus(call, result.status);
    if (result.status.ok()) CheckOutputs(call, result);
    if (random_.Chance(10) && !finishing_) Call();
    if (random_.Chance(3)) Cancel(random_.Below(static_cast<int>(calls_.size())));
  }

  // Each kind of failure needs its reason.
  void CheckStatus(const ClientCall& call, const absl::Status& status) {
    const bool splits = batching_.has_value() && batching_->enable_large_batch_splitting;
    const bool over = batching_.has_value() && batching_->max_batch_size.has_value() &&
                      call.rows > *batching_->max_batch_size;
    bool allowed = true;
    switch (status.code()) {
      case absl::StatusCode::kOk:
        allowed = call.kind == Kind::kGood;
        break;
      case absl::StatusCode::kInvalidArgument:
        allowed = call.kind == Kind::kOdd || over;
        break;
      case absl::StatusCode::kFailedPrecondition:  // Rows of the sum; joined pieces of scalars.
        allowed = call.signature == kSignatureSum && (batching_.has_value() || splits);
        break;
      case absl::StatusCode::kInternal:
        allowed = call.kind == Kind::kDeadly || random_deaths_;
        break;
      case absl::StatusCode::kUnavailable:
        allowed = deaths_ > 0 || forced_ ||
                  (batching_.has_value() && batching_->max_enqueued_batches.has_value());
        break;
      case absl::StatusCode::kDeadlineExceeded:
        allowed = call.deadline < timers_.Now() + absl::Minutes(1);
        break;
      case absl::StatusCode::kResourceExhausted:
        break;
      default:
        allowed = false;
    }
    if (!allowed) Fail(base::Cat("call ", call.number, " got ", status.ToString()));
  }

  void CheckOutputs(const ClientCall& call, const CallResult& result) {
    const bool splits = batching_.has_value() && batching_->enable_large_batch_splitting;
    if (splits && call.signature == kSignatureSum) return;  // One sum a piece: he asked for it.
    const OwnedViews expected = *Apply(call.signature, call.inputs);
    const tensor::TensorView& got = result.outputs.at(0);
    const tensor::TensorView& want = expected.tensors[0];
    if (got.shape != want.shape || got.dtype != want.dtype ||
        !std::equal(got.bytes.begin(), got.bytes.end(), want.bytes.begin(), want.bytes.end())) {
      Fail(base::Cat("call ", call.number, " got somebody else's rows: ", got.shape.ToString(),
                     " for ", want.shape.ToString()));
    }
  }

  // ---- Workers -------------------------------------------------------------------------------

  static absl::StatusOr<OwnedViews> Apply(int signature, const OwnedViews& inputs) {
    const tensor::TensorView& x = inputs.tensors[0];
    if (signature == kSignatureStrings) {
      std::vector<std::string> values = StringsOf(x);
      for (std::string& value : values) value += "!";
      return Strings(x.shape, values);
    }
    const std::vector<float> values = FloatsOf(x);
    if (signature == kSignatureSum) {
      return Floats({1}, std::accumulate(values.begin(), values.end(), 0.0F));
    }
    OwnedViews y = Floats(x.shape, 0);
    auto moved = std::make_shared<std::vector<float>>(values);
    for (float& value : *moved) value += 0.5F;
    y.tensors[0].bytes = std::as_bytes(std::span<const float>(*moved));
    y.keep = std::move(moved);
    return y;
  }

  // The calls whose rows are in these inputs.
  std::set<int> CallsIn(const FakeRun& run, const OwnedViews& inputs) const {
    std::set<int> numbers;
    if (run.signature == kSignatureStrings) {
      for (const std::string& value : StringsOf(inputs.tensors[0]))
        numbers.insert(std::stoi(value));
    } else {
      for (const float value : FloatsOf(inputs.tensors[0])) {
        numbers.insert(static_cast<int>(value) / kRowsPerCall);
      }
    }
    return numbers;
  }

  bool AnyOf(Kind kind, const FakeRun& run, const OwnedViews& inputs) const {
    for (const int number : CallsIn(run, inputs)) {
      if (calls_[static_cast<size_t>(number)]->kind == kind) return true;
    }
    return false;
  }

  void StartWorker() {
    if (queue_ == nullptr) return;
    auto owned = std::make_unique<FakeWorker>(timers_, random_.Between(1, 3));
    FakeWorker* worker = owned.get();
    workers_.push_back(std::move(owned));
    worker->time = [this](const FakeRun& run) {
      const absl::Duration time =
          fixed_ + per_row_ * static_cast<double>(std::max<int64_t>(1, run.rows));
      return time * (random_.Chance(slow_percent_) ? 40 : 1);
    };
    worker->on_start = [this](const FakeRun& run, const OwnedViews& inputs) {
      CheckRun(run, inputs);
    };
    worker->model = [this](const FakeRun& run,
                           const OwnedViews& inputs) -> absl::StatusOr<OwnedViews> {
      if (AnyOf(Kind::kOdd, run, inputs)) return absl::InvalidArgumentError("an odd row");
      return Apply(run.signature, inputs);
    };
    worker->kills = [this](const FakeRun& run, const OwnedViews& inputs) {
      return AnyOf(Kind::kDeadly, run, inputs);
    };
    worker->on_free = [this] {
      if (queue_ != nullptr) queue_->OnWorkerFree();
    };
    worker->on_death = [this, worker] { Died(worker); };
    queue_->AddWorker(worker);
  }

  void CheckRun(const FakeRun& run, const OwnedViews& inputs) {
    for (const int number : CallsIn(run, inputs)) {
      ClientCall& call = *calls_[static_cast<size_t>(number)];
      Say("run", number);
      ++call.runs;
      if (call.answers > 0) Fail(base::Cat("call ", number, " ran after its answer"));
      if (call.cancelled) Fail(base::Cat("call ", number, " ran after its cancel"));
      if (call.deadline <= timers_.Now()) Fail(base::Cat("call ", number, " ran when expired"));
      if (stateful_ && call.runs > 1) Fail(base::Cat("stateful call ", number, " ran twice"));
    }
    int64_t rows_max = rows_max_;
    if (batching_.has_value()) {
      const auto allowed = batching_->allowed_batch_sizes;
      rows_max =
          batching_->ExecutionRowsMax().value_or(allowed.empty() ? rows_max_ : allowed.back());
    }
    if (run.pieces > 1 && run.rows > rows_max) {
      Fail(base::Cat("a batch of ", run.rows, " rows, of at most ", rows_max));
    }
    const bool batches = !stateful_ && run.signature != kSignatureFixed;
    if (run.pieces > 1 && !batches) Fail("batched what must run alone");
  }

  void Kill() {
    if (finishing_) return;
    for (const auto& worker : workers_) {
      if (worker->alive() && random_.Chance(50)) {
        worker->Die();
        break;
      }
    }
    Later(random_.Exponential(absl::Milliseconds(300)), [this] { Kill(); });
  }

  void Died(FakeWorker* worker) {
    ++deaths_;
    Say("death", deaths_);
    if (queue_ == nullptr) return;
    // Its owner learns of it before its calls do, or later, and starts another.
    if (random_.Chance(30)) queue_->RemoveWorker(worker);
    Later(absl::Milliseconds(random_.Below(3)), [this, worker] {
      if (queue_ != nullptr) queue_->RemoveWorker(worker);
      Later(absl::Milliseconds(random_.Below(200)), [this] { StartWorker(); });
    });
  }

  // ---- The end -------------------------------------------------------------------------------

  void Finish() {
    finishing_ = true;
    if (random_.Chance(10)) {
      Say("failing all", 0);
      forced_ = true;
      queue_->FailAll(absl::UnavailableError("the end of the world"));
    }
    queue_->Drain([this] {
      Say("drained", 0);
      drained_ = true;
      stats_ = queue_->stats();
      queue_.reset();
    });
  }

  void CheckEnd() {
    if (!drained_) return Fail("the drain did not end");
    for (const auto& call : calls_) {
      if (call->answers == 0 && !call->cancelled) {
        return Fail(base::Cat("call ", call->number, " was lost"));
      }
    }
    for (const auto& worker : workers_) {
      if (worker->out() > 0) return Fail("a run never came back");
    }
    const int64_t ends = stats_.answered + stats_.cancelled + stats_.expired_queued +
                         stats_.expired_running + stats_.hopeless + stats_.refused_full +
                         stats_.refused_late + stats_.refused_shed + stats_.refused_share +
                         stats_.refused_poison + stats_.refused_other + stats_.lost +
                         stats_.failed_all;
    if (ends != stats_.submitted) {
      return Fail(base::Cat(stats_.submitted, " calls came and ", ends, " ended"));
    }
    if (stats_.queued_calls != 0 || stats_.queued_bytes != 0 || stats_.running_calls != 0) {
      Fail("drained, but not empty");
    }
  }

  loop::FakeTimers timers_;
  Random random_;
  const bool verbose_;
  std::string error_;

  bool stateful_ = false;
  int64_t rows_max_ = 1;
  std::optional<BatchingParameters> batching_;
  int odd_percent_ = 0, deadly_percent_ = 0, slow_percent_ = 0, burst_ = 1;
  bool random_deaths_ = false;
  absl::Duration gap_, fixed_, per_row_;

  std::vector<std::unique_ptr<ClientCall>> calls_;
  std::vector<std::unique_ptr<FakeWorker>> workers_;
  std::unique_ptr<VersionQueue> queue_;
  bool inside_submit_ = false;
  bool finishing_ = false;
  bool forced_ = false;
  bool drained_ = false;
  int deaths_ = 0;
  Stats stats_;
};

struct Flags {
  uint64_t first = 1;
  uint64_t last = 1000;
  bool verbose = false;
};

Flags Parse(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag.starts_with("--seeds=")) {
      flags.last = std::strtoull(argv[i] + 8, nullptr, 10);
    } else if (flag.starts_with("--seed=")) {
      flags.first = flags.last = std::strtoull(argv[i] + 7, nullptr, 10);
    } else if (flag == "--verbose") {
      flags.verbose = true;
    } else {
      std::fprintf(stderr, "usage: sched_sim [--seeds=1000] [--seed=N] [--verbose]\n");
      std::exit(2);
    }
  }
  return flags;
}

int Main(int argc, char** argv) {
  const Flags flags = Parse(argc, argv);
  int64_t calls = 0;
  Stats sum;
  for (uint64_t seed = flags.first; seed <= flags.last; ++seed) {
    World world(seed, flags.verbose);
    const std::string error = world.Run();
    if (!error.empty()) {
      std::fprintf(stderr, "sched_sim: seed %llu: %s\nreplay with --seed=%llu --verbose\n",
                   static_cast<unsigned long long>(seed), error.c_str(),
                   static_cast<unsigned long long>(seed));
      return 1;
    }
    calls += world.calls();
    for (int64_t Stats::*counter :
         {&Stats::answered, &Stats::cancelled, &Stats::expired_queued, &Stats::expired_running,
          &Stats::hopeless, &Stats::refused_full, &Stats::refused_late, &Stats::refused_shed,
          &Stats::refused_other, &Stats::lost, &Stats::failed_all, &Stats::runs, &Stats::run_calls,
          &Stats::second_runs, &Stats::workers_lost}) {
      sum.*counter += world.stats().*counter;
    }
  }
  std::printf(
      "sched_sim: seeds %llu to %llu: %lld calls, each ended once: %lld answered, %lld cancelled, "
      "%lld + %lld expired queued and running, %lld hopeless, %lld full, %lld late, %lld shed, "
      "%lld otherwise refused, %lld lost, %lld failed; %lld runs of %lld calls, %lld second runs, "
      "%lld workers lost\n",
      static_cast<unsigned long long>(flags.first), static_cast<unsigned long long>(flags.last),
      static_cast<long long>(calls), static_cast<long long>(sum.answered),
      static_cast<long long>(sum.cancelled), static_cast<long long>(sum.expired_queued),
      static_cast<long long>(sum.expired_running), static_cast<long long>(sum.hopeless),
      static_cast<long long>(sum.refused_full), static_cast<long long>(sum.refused_late),
      static_cast<long long>(sum.refused_shed), static_cast<long long>(sum.refused_other),
      static_cast<long long>(sum.lost), static_cast<long long>(sum.failed_all),
      static_cast<long long>(sum.runs), static_cast<long long>(sum.run_calls),
      static_cast<long long>(sum.second_runs), static_cast<long long>(sum.workers_lost));
  return 0;
}

}  // namespace
}  // namespace tensord::sched

int main(int argc, char** argv) { return tensord::sched::Main(argc, argv); }
