// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/fair_share.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/limits.h"
#include "base/sched_limits.h"

namespace tensord::sched {
namespace {

constexpr absl::Duration kFade = absl::Seconds(1);  // To a third.
// Sorting some hundred demands takes microseconds: not for each call.
constexpr absl::Duration kLookEvery = absl::Milliseconds(10);
// Weights start anew before they lose precision: e^20.
constexpr absl::Duration kWeightsLast = absl::Seconds(20);
// A client that asked for less than this part of the largest demand is hardly there.
constexpr double kActiveShare = 1e-6;

}  // namespace

double WaterLevel(std::span<const double> demands, double capacity) {
  std::vector<double> sorted(demands.begin(), demands.end());
  std::ranges::sort(sorted);
  double left = capacity;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto clients = static_cast<double>(sorted.size() - i);
    if (sorted[i] * clients > left) return left / clients;
    left -= sorted[i];
  }
  return std::numeric_limits<double>::infinity();
}

void FairShare::Make() {
  if (clients_.empty()) clients_.resize(limits::kClientBuckets);
}

double FairShare::Weight(absl::Time now) {
  if (now - weight_since_ > kWeightsLast) {
    const double faded = std::exp(-absl::FDivDuration(now - weight_since_, kFade));
    for (Client& client : clients_) client.offered *= faded;
    admitted_ *= faded;
    weight_since_ = now;
  }
  return std::exp(absl::FDivDuration(now - weight_since_, kFade));
}

void FairShare::Offer(ClientBucket client, absl::Duration cost, absl::Time now) {
  Make();
  clients_[client].offered += absl::ToDoubleSeconds(cost) * Weight(now);
}

void FairShare::Admit(absl::Duration cost, absl::Time now) {
  admitted_ += absl::ToDoubleSeconds(cost) * Weight(now);
}

bool FairShare::OverShare(ClientBucket client, absl::Time now) {
  if (clients_.empty()) return false;
  if (now >= looked_ + kLookEvery || now < looked_) {
    looked_ = now;
    std::vector<double> demands;
    for (const Client& one : clients_) demands.push_back(one.offered);
    level_ = WaterLevel(demands, admitted_);
    const double least = kActiveShare * *std::ranges::max_element(demands);
    active_ = static_cast<int>(
        std::ranges::count_if(demands, [least](double demand) { return demand > least; }));
  }
  return active_ > 1 && clients_[client].offered > level_;
}

absl::Time FairShare::Turn(ClientBucket client, absl::Time now) const {
  if (waiting_ == 0) return now;
  if (clients_[client].waiting == 0) return clock_;
  return std::clamp(clients_[client].turn, clock_, clock_ + limits::kPatienceMax);
}

void FairShare::Wait(ClientBucket client, absl::Duration cost, absl::Time now) {
  Make();
  const absl::Time turn = Turn(client, now);
  if (waiting_++ == 0) clock_ = now;
  clients_[client].turn = turn + cost;
  ++clients_[client].waiting;
}

void FairShare::Leave(ClientBucket client) {
  --waiting_;
  --clients_[client].waiting;
}

}  // namespace tensord::sched
