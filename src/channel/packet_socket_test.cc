// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "channel/packet_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "gtest/gtest.h"

namespace tensord::channel {
namespace {

class PacketSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = PacketSocket::Pair();
    ASSERT_TRUE(pair.ok()) << pair.status();
    pair->first.SetNonBlocking();
    front_.emplace(std::move(pair->first));
    worker_.emplace(std::move(pair->second));
  }

  std::optional<PacketSocket> front_;
  std::optional<PacketSocket> worker_;
};

TEST_F(PacketSocketTest, RecordsKeepTheirBorders) {
  ASSERT_TRUE(front_->Send("one").ok());
  ASSERT_TRUE(front_->Send("three").ok());
  EXPECT_EQ(worker_->Receive(100, 0)->bytes, "one");
  EXPECT_EQ(worker_->Receive(100, 0)->bytes, "three");
}

TEST_F(PacketSocketTest, TheLargestRecordFits) {
  const std::string record(limits::kRecordBytesMax, 'r');
  ASSERT_TRUE(front_->Send(record).ok());
  EXPECT_EQ(worker_->Receive(limits::kRecordBytesMax, 0)->bytes, record);
}

TEST_F(PacketSocketTest, DescriptorsArriveCloseOnExec) {
  ASSERT_TRUE(front_->Send("fd", {worker_->fd(), front_->fd()}).ok());
  const auto packet = worker_->Receive(100, 2);
  ASSERT_TRUE(packet.ok());
  ASSERT_EQ(packet->descriptors.size(), 2u);
  EXPECT_NE(fcntl(packet->descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(PacketSocketTest, UnwantedDescriptorsAreRefusedAndNotKept) {
  ASSERT_TRUE(worker_->Send("fd", {worker_->fd()}).ok());
  EXPECT_EQ(front_->Receive(100, 0).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(worker_->Send("fd", {worker_->fd(), worker_->fd(), worker_->fd()}).ok());
  EXPECT_EQ(front_->Receive(100, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PacketSocketTest, ALongerRecordThanAgreedIsRefused) {
  ASSERT_TRUE(worker_->Send("longer").ok());
  EXPECT_EQ(front_->Receive(5, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PacketSocketTest, NothingWaitingIsNotFound) {
  EXPECT_EQ(front_->Receive(5, 0).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PacketSocketTest, APeerThatIsGoneIsUnavailable) {
  worker_.reset();
  EXPECT_EQ(front_->Receive(5, 0).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(front_->Send("x").code(), absl::StatusCode::kUnavailable);
}

TEST_F(PacketSocketTest, AFullQueueIsSaidAndNotWaitedFor) {
  absl::Status status;
  for (int i = 0; i < 100'000 && status.ok(); ++i) status = front_->Send("record");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tensord::channel
