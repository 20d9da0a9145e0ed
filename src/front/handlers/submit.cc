// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/submit.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "loop/loop_set.h"

namespace tensord::front {
namespace {

// Everything a call needs until it is over. An exchange belongs to its connection's loop, so it
// must be let go there, wherever the queue dropped the last reference.
struct Holder {
  std::shared_ptr<const Servable> servable;
  std::shared_ptr<Exchange> exchange;
  std::shared_ptr<const void> request;
  absl::AnyInvocable<void(sched::CallResult)> done;
};

std::shared_ptr<Holder> Hold(Submission* submission, bool same_loop) {
  auto holder =
      std::make_unique<Holder>(Holder{submission->servable, submission->exchange,
                                      std::move(submission->request), std::move(submission->done)});
  if (same_loop) return holder;
  return std::shared_ptr<Holder>(holder.release(), [](Holder* held) {
    std::unique_ptr<Holder> owner(held);
    loop::EventLoop& loop = held->exchange->loop();
    loop::PostOrDie(loop, [owner = std::move(owner)] {});
  });
}

// What a call gets that arrives when its version's queue has gone: it was on its way between loops.
sched::CallResult Gone(const Servable& servable) {
  sched::CallResult result;
  result.status =
      absl::UnavailableError(base::Cat("version ", servable.version, " of model ", servable.model,
                                       " is not served any more; try again"));
  return result;
}

// The stamps of the stages between parsing and writing: one look at the clock at either end, and
// the queue's own time between them.
void StampSubmitted(const Submission& submission) {
  Trace& trace = submission.exchange->trace();
  trace.parsed = submission.exchange->loop().ClockNow();
  trace.rows = std::max<int64_t>(0, submission.call.rows);
}

void Answer(Holder& holder, sched::CallResult result) {
  Trace& trace = holder.exchange->trace();
  trace.answered = holder.exchange->loop().ClockNow();
  trace.started = holder.exchange->head().arrived + result.queued;
  trace.run_time = result.run_time;
  trace.batch_rows = result.batch_rows;
  holder.done(std::move(result));
}

// On the home loop.
void CancelAt(const Servable& servable, sched::CallId id) {
  if (servable.queue != nullptr) servable.queue->Cancel(id);
}

// On the home loop. What arrives in one iteration of it is handed out together, at its end.
sched::CallId Add(const std::shared_ptr<const Servable>& servable, sched::Call call) {
  const bool first = !servable->queue->waits_for_dispatch();
  const sched::CallId id = servable->queue->Add(std::move(call));
  if (first && servable->queue->waits_for_dispatch()) {
    servable->home->Defer([servable] {
      if (servable->queue != nullptr) servable->queue->Dispatch();
    });
  }
  return id;
}

void SubmitHere(Submission submission) {
  if (submission.servable->queue == nullptr) return submission.done(Gone(*submission.servable));
  std::shared_ptr<Holder> holder = Hold(&submission, /*same_loop=*/true);
  sched::Call call = std::move(submission.call);
  call.keep = holder;
  call.done = [holder](sched::CallResult result) { Answer(*holder, std::move(result)); };
  const sched::CallId id = Add(submission.servable, std::move(call));
  submission.exchange->OnCancel([id, servable = submission.servable] { CancelAt(*servable, id); });
}

void SubmitThere(Submission submission) {
  // Written and read on the home loop only; tasks arrive there in the order of posting.
  struct Ticket {
    sched::CallId id = 0;
  };
  auto ticket = std::make_shared<Ticket>();
  loop::EventLoop& home = *submission.servable->home;
  loop::EventLoop& here = submission.exchange->loop();
  std::shared_ptr<const Servable> servable = submission.servable;
  submission.exchange->OnCancel([ticket, &home, servable] {
    loop::PostOrDie(home, [ticket, servable] { CancelAt(*servable, ticket->id); });
  });
  std::shared_ptr<Holder> holder = Hold(&submission, /*same_loop=*/false);
  sched::Call call = std::move(submission.call);
  call.keep = holder;
  call.done = [&here, holder = std::move(holder)](sched::CallResult result) {
    loop::PostOrDie(here, [holder, result = std::move(result)]() mutable {
      Answer(*holder, std::move(result));
    });
  };
  loop::PostOrDie(home, [ticket, servable, call = std::move(call)]() mutable {
    if (servable->queue == nullptr) return call.done(Gone(*servable));
    ticket->id = Add(servable, std::move(call));
  });
}

}  // namespace

void Submit(Submission submission) {
  StampSubmitted(submission);
  if (submission.servable->home == &submission.exchange->loop()) {
    SubmitHere(std::move(submission));
  } else {
    SubmitThere(std::move(submission));
  }
}

}  // namespace tensord::front
