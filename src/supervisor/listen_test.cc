// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/listen.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/text.h"

namespace tensord::supervisor {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;

// A port of 127.0.0.1 that was free a moment ago.
int FreePort() {
  const base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t bytes = sizeof(address);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), bytes), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  return ntohs(address.sin_port);
}

bool Connects(int port) {
  const base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

bool Connects(const std::string& path) {
  const base::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

std::string Error(const ListenOptions& options) {
  const auto listeners = Listeners::Open(options);
  EXPECT_EQ(listeners.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(base::Message(listeners.status()));
}

std::string SocketPath() { return base::Cat(testing::TempDir(), "/tensord_listen_", getpid()); }

TEST(Listeners, GiveEachLoopASocketForEachPort) {
  const int grpc = FreePort();
  const int rest = FreePort();
  const auto listeners = Listeners::Open({.grpc_port = grpc, .rest_port = rest, .loops = 2});
  ASSERT_TRUE(listeners.ok()) << listeners.status();
  const FrontSockets sockets = listeners->ForFront();
  ASSERT_EQ(sockets.loops.size(), 2u);
  for (const LoopSockets& loop : sockets.loops) {
    // Below are 0 to 2, and 3, which the front's control socket takes.
    EXPECT_THAT(loop.grpc_fd, Ge(10));
    EXPECT_THAT(loop.rest_fd, Ge(10));
    EXPECT_EQ(loop.unix_fd, -1);
  }
  EXPECT_FALSE(sockets.listen_when_loaded);
  EXPECT_EQ(listeners->Descriptors().size(), 4u);
  EXPECT_TRUE(Connects(grpc));
  EXPECT_TRUE(Connects(rest));
}

TEST(Listeners, AreNamedAsTheyListen) {
  const int port = FreePort();
  const auto listeners = Listeners::Open({.grpc_port = port, .bind_address = "127.0.0.1"});
  ASSERT_TRUE(listeners.ok()) << listeners.status();
  EXPECT_THAT(listeners->descriptions(), ElementsAre(base::Cat("gRPC on 127.0.0.1:", port)));
}

TEST(Listeners, RefuseClientsUntilTheFrontListens) {
  const int port = FreePort();
  const auto listeners = Listeners::Open({.grpc_port = port, .listen = false});
  ASSERT_TRUE(listeners.ok()) << listeners.status();
  EXPECT_TRUE(listeners->ForFront().listen_when_loaded);
  EXPECT_FALSE(Connects(port));
  ASSERT_EQ(listen(listeners->ForFront().loops[0].grpc_fd, 1), 0);
  EXPECT_TRUE(Connects(port));
}

TEST(Listeners, SayWhichPortIsInUseAndWhatToDo) {
  const int port = FreePort();
  const auto first = Listeners::Open({.grpc_port = port});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Error({.grpc_port = port}),
            base::Cat("gRPC cannot listen on 0.0.0.0:", port, ": port ", port,
                      " is in use by another program; stop that one (`ss -ltnp` names it) or "
                      "choose another port with --port"));
  EXPECT_THAT(Error({.rest_port = port}), HasSubstr("choose another port with --rest_api_port"));
}

TEST(Listeners, CanTakeAPortAgainAtOnce) {
  const int port = FreePort();
  for (int i = 0; i < 3; ++i) {
    const auto listeners = Listeners::Open({.grpc_port = port, .loops = 2});
    ASSERT_TRUE(listeners.ok()) << listeners.status();
    EXPECT_TRUE(Connects(port));
  }
}

TEST(Listeners, SayThatAnAddressIsNotOurs) {
  EXPECT_THAT(Error({.grpc_port = FreePort(), .bind_address = "192.0.2.1"}),
              HasSubstr("this machine has no such address; see --bind_address"));
}

TEST(Listeners, TakeAUnixSocketAndRemoveItAtTheEnd) {
  const std::string path = SocketPath();
  {
    const auto listeners = Listeners::Open({.unix_path = path, .loops = 2});
    ASSERT_TRUE(listeners.ok()) << listeners.status();
    EXPECT_TRUE(Connects(path));
    EXPECT_THAT(listeners->ForFront().loops[0].unix_fd, Ge(10));
    EXPECT_EQ(listeners->ForFront().loops[1].unix_fd, -1);
    EXPECT_THAT(Error({.unix_path = path}), HasSubstr("is in use by another program"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Listeners, ReplaceAUnixSocketThatNobodyListensOn) {
  const std::string path = SocketPath();
  {
    // Closed without being removed, as a killed server leaves it.
    const base::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(path));
  const auto listeners = Listeners::Open({.unix_path = path});
  ASSERT_TRUE(listeners.ok()) << listeners.status();
  EXPECT_TRUE(Connects(path));
}

TEST(Listeners, LeaveAFileThatIsNoSocket) {
  const std::string path = SocketPath();
  std::ofstream(path) << "precious";
  EXPECT_THAT(Error({.unix_path = path}), HasSubstr("exists and is no socket"));
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove(path);
}

TEST(CheckUnixPath, SaysWhatOpenWouldAndLeavesNothing) {
  const std::string path = SocketPath();
  EXPECT_TRUE(CheckUnixPath(path, "--grpc_socket_path").ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  for (const std::string& bad :
       {std::string("/no/such/dir/s"), std::string("/dev/null/s"), "/" + std::string(200, 'x')}) {
    const absl::Status status = CheckUnixPath(bad, "--grpc_socket_path");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << bad;
    EXPECT_THAT(std::string(base::Message(status)), HasSubstr("--grpc_socket_path=" + bad));
  }
}

TEST(Listeners, SayWhatIsWrongWithAPath) {
  EXPECT_THAT(Error({.unix_path = "/" + std::string(200, 'x')}),
              HasSubstr("is longer than the 107"));
  EXPECT_THAT(Error({.unix_path = "/no/such/dir/s"}), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace tensord::supervisor
