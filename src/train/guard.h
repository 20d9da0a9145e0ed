// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>

namespace tensord::train {

// Runs `work` in a child and stays behind as its guard: passes SIGTERM, SIGINT and SIGHUP (as
// SIGTERM) on, and ends with its exit code. Whichever of the two dies, by SIGKILL too, the other
// one sees to it that no process of the job is left: the guard adopts and kills all, the child gets
// SIGUSR2 when the guard is gone.
// REQUIRES: one thread.
int Guarded(const std::function<int()>& work);

}  // namespace tensord::train
