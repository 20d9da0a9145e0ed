// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/kept_config.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>

#include "channel/control.h"
#include "channel/memory_file.h"
#include "channel/packet_socket.h"
#include "loop/event_loop.h"

namespace tensord::serve {
namespace {

KeptConfig Full() {
  return {.files = {{"model_config_file", "model_config_list {}"}, {"tls_key_file", ""}},
          .reload = std::string("\0\1", 2),
          .unloaded = {"a", "b"}};
}

TEST(KeptConfig, IsTheSameAfterItWasPassedOn) {
  for (const KeptConfig& config : {Full(), KeptConfig(), KeptConfig{.reload = ""}}) {
    EXPECT_EQ(DecodeKeptConfig(EncodeKeptConfig(config)).value(), config);
  }
}

TEST(KeptConfig, ThatIsCutIsRefused) {
  const std::string bytes = EncodeKeptConfig(Full());
  EXPECT_FALSE(DecodeKeptConfig(std::string_view(bytes).substr(0, bytes.size() - 1)).ok());
}

TEST(TakeKeptConfig, IsEmptyWithoutAnyAndWhereItCannotBeRead) {
  EXPECT_EQ(TakeKeptConfig(-1), KeptConfig());
  EXPECT_EQ(TakeKeptConfig(open("/dev/null", O_RDONLY | O_CLOEXEC)), KeptConfig());
  absl::StatusOr<base::UniqueFd> nonsense = channel::SealBytes("test", "nonsense");
  ASSERT_TRUE(nonsense.ok()) << nonsense.status();
  EXPECT_EQ(TakeKeptConfig(nonsense->Release()), KeptConfig());
}

// The keeper with the supervisor's end of its socket.
class ConfigKeeperTest : public testing::Test {
 protected:
  ConfigKeeperTest() {
    auto pair = channel::PacketSocket::Pair().value();
    supervisor_.emplace(std::move(pair.first));
    supervisor_->SetNonBlocking();
    client_.emplace(
        *loop_, base::UniqueFd(fcntl(pair.second.fd(), F_DUPFD_CLOEXEC, 0)),
        [](const channel::ControlRecord&, base::UniqueFd) {}, [] {});
    keeper_.emplace(*loop_, &*client_, Full());
  }

  // What the supervisor got next, as the next front reads it; none: it got nothing.
  std::optional<KeptConfig> Kept() {
    auto packet = supervisor_->Receive(sizeof(channel::ControlRecord), 1);
    if (!packet.ok()) return std::nullopt;
    channel::ControlRecord record;
    std::memcpy(&record, packet->bytes.data(), sizeof(record));
    EXPECT_EQ(record.kind, channel::ControlKind::kKeep);
    if (packet->descriptors.empty()) return KeptConfig();
    EXPECT_TRUE(
        channel::CheckSealed(packet->descriptors.front().get(), channel::kKeptBytesMax).ok());
    return TakeKeptConfig(packet->descriptors.front().Release());
  }

  std::unique_ptr<loop::EventLoop> loop_ = loop::EventLoop::Create().value();
  std::optional<channel::PacketSocket> supervisor_;
  std::optional<fleet::SupervisorClient> client_;
  std::optional<ConfigKeeper> keeper_;
};

TEST_F(ConfigKeeperTest, HandsEachChangeOverBeforeAnybodyCanBeToldOfIt) {
  KeptConfig config = keeper_->now();
  config.unloaded.clear();
  keeper_->Set(config);
  EXPECT_EQ(Kept(), config);
  keeper_->SetFiles({{"tls_key_file", "key"}, {"tls_certificate_file", "certificate"}});
  EXPECT_EQ(Kept(), keeper_->now());
  EXPECT_EQ(keeper_->now().files.at("tls_key_file"), "key");
  EXPECT_EQ(keeper_->now().files.at("model_config_file"), "model_config_list {}");
}

TEST_F(ConfigKeeperTest, SaysNothingWhenNothingChanged) {
  keeper_->Set(Full());
  keeper_->SetFiles({{"tls_key_file", ""}});
  EXPECT_EQ(Kept(), std::nullopt);
}

TEST_F(ConfigKeeperTest, LeavesNothingOldBehindWhereTheNewIsEmptyOrTooLarge) {
  KeptConfig large = Full();
  large.reload = std::string(channel::kKeptBytesMax, 'x');
  keeper_->Set(large);
  EXPECT_EQ(Kept(), KeptConfig());
  keeper_->Set(KeptConfig());
  EXPECT_EQ(Kept(), KeptConfig());
}

}  // namespace
}  // namespace tensord::serve
