// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "base/text.h"
#include "base/unique_fd.h"

namespace tensord::supervisor {
namespace {

// A datagram socket under a name as NOTIFY_SOCKET has it.
base::UniqueFd Receiver(const std::string& name) {
  base::UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
            0);
  return fd;
}

std::string Received(const base::UniqueFd& fd) {
  char text[100];
  const ssize_t got = recv(fd.get(), text, sizeof(text), 0);
  return got < 0 ? "" : std::string(text, static_cast<size_t>(got));
}

TEST(NotifyServiceManager, ReachesAPathAndAnAbstractName) {
  const std::string path = base::Cat(testing::TempDir(), "/tensord_notify_", getpid());
  for (const std::string& name : {path, base::Cat("@tensord_notify_", getpid())}) {
    const base::UniqueFd receiver = Receiver(name);
    NotifyServiceManager(name, "READY=1");
    EXPECT_EQ(Received(receiver), "READY=1") << name;
  }
  unlink(path.c_str());
}

TEST(NotifyServiceManager, DoesNothingWithoutAReceiver) {
  NotifyServiceManager("", "READY=1");
  NotifyServiceManager("/no/such/socket", "READY=1");
  NotifyServiceManager(std::string(1000, 'x'), "READY=1");
}

}  // namespace
}  // namespace tensord::supervisor
