// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "front/testing/edge_fixture.h"

namespace tensord::front {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
std::string Preface() {
  return std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\4\0\0\0\0\0", 9);
}

TEST(Listener, WantsAListeningSocket) {
  const auto loop = *loop::EventLoop::Create();
  base::ByteBudget budget(1);
  EchoService service;
  base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(Listener::Create(loop.get(), std::move(fd), {}, &service, &budget).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Listener, TheFirstBytesTellTheProtocol) {
  EdgeFixture f;
  RawClient http1 = f.Connect();
  EXPECT_THAT(f.Talk(&http1, kGet), EndsWith("GET /x 0 false\n"));
  RawClient http2 = f.Connect();
  std::string settings;
  for (const char c : Preface()) settings += f.Talk(&http2, std::string(1, c));
  EXPECT_EQ(settings.substr(3, 1), "\4");  // A SETTINGS frame.
}

TEST(Listener, APortForOneProtocolSaysSo) {
  EdgeFixture grpc_only(ListenerOptions{.protocols = {.http1 = false, .http2 = true}});
  RawClient http1 = grpc_only.Connect();
  EXPECT_THAT(grpc_only.Talk(&http1, kGet), HasSubstr("This port speaks gRPC"));
  EXPECT_TRUE(http1.closed());
  EdgeFixture rest_only(ListenerOptions{.protocols = {.http1 = true, .http2 = false}});
  RawClient http2 = rest_only.Connect();
  EXPECT_THAT(rest_only.Talk(&http2, Preface()), StartsWith("HTTP/1.1 505 "));
  EXPECT_TRUE(http2.closed());
}

TEST(Listener, WhatIsNoProtocolIsClosed) {
  EdgeFixture f;
  RawClient client = f.Connect();
  f.Talk(&client, "\x16\x03\x01 some TLS client hello\r\n\r\n");
  EXPECT_TRUE(client.closed());
}

TEST(Listener, ASilentConnectionIsClosed) {
  EdgeFixture f;
  RawClient silent = f.Connect();
  RawClient half = f.Connect();
  f.Talk(&half, "PRI * HT");
  f.Advance(limits::kHeaderWaitMax + absl::Seconds(2));
  EXPECT_EQ(f.listener()->connections(), 0u);
}

TEST(Listener, WhenFullTheOneIdleForLongestMakesRoom) {
  EdgeFixture f(ListenerOptions{.connections_max = 3});
  RawClient busy = f.Connect();
  f.Talk(&busy, "GET /hang HTTP/1.1\r\nHost: a\r\n\r\n");
  RawClient old_idle = f.Connect();
  f.Talk(&old_idle, kGet);
  RawClient new_idle = f.Connect();
  f.Talk(&new_idle, kGet);
  RawClient newcomer = f.Connect();
  EXPECT_THAT(f.Talk(&newcomer, kGet), StartsWith("HTTP/1.1 200"));
  old_idle.Receive();
  new_idle.Receive();
  EXPECT_TRUE(old_idle.closed());
  EXPECT_FALSE(new_idle.closed());
  EXPECT_EQ(f.listener()->connections(), 3u);
  EXPECT_EQ(f.listener()->counts().evicted, 1u);
}

TEST(Listener, WhenFullOfBusyOnesNewcomersWait) {
  EdgeFixture f(ListenerOptions{.connections_max = 1});
  RawClient busy = f.Connect();
  f.Talk(&busy, "GET /hang HTTP/1.1\r\nHost: a\r\n\r\n");
  RawClient newcomer = f.Connect();
  EXPECT_EQ(f.Talk(&newcomer, kGet), "");
  EXPECT_FALSE(newcomer.closed());
  busy.Close();
  EXPECT_THAT(f.Talk(&newcomer, ""), StartsWith("HTTP/1.1 200"));
}

TEST(Listener, WhoConnectedBeforeTheStopIsServed) {
  EdgeFixture f;
  RawClient waiting = f.Connect();
  f.listener()->StopAccepting(Listener::Newcomers::kWait);
  EXPECT_THAT(f.Talk(&waiting, kGet), StartsWith("HTTP/1.1 200"));
}

TEST(Listener, ADrainWithoutConnectionsIsDoneAtOnce) {
  EdgeFixture f;
  bool done = false;
  f.listener()->Drain(f.loop().Now() + absl::Seconds(5), [&] {
    done = true;
    f.listener().reset();
  });
  EXPECT_FALSE(done);
  f.Pump();
  EXPECT_TRUE(done);
}

TEST(Listener, MayGoWithItsConnectionsOpen) {
  EdgeFixture f;
  RawClient client = f.Connect();
  f.Talk(&client, "GET /hang HTTP/1.1\r\nHost: a\r\n\r\n");
  client.Send("more");
  f.listener().reset();
  f.Pump();
  EXPECT_EQ(f.service().counts().cancelled, 1u);
  EXPECT_EQ(f.budget().used(), 0u);
}

}  // namespace
}  // namespace tensord::front
