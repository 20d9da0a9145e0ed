// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

// The subcommands of `tensord`: each takes what stands behind its name and gives the exit code.
namespace tensord::cli {

using Arguments = std::vector<std::string>;

// `tensord serve`: the supervisor. 0 after a drain, 1 when it cannot start, 2 for wrong usage; see
// supervisor::Supervision for the rest.
int Serve(const Arguments& arguments);
// Started under the name tensorflow_model_server: the same with the original's command line, words
// and exit codes (255 when it cannot start). `program` is argv[0].
int ServeAsOriginal(const std::string& program, const Arguments& arguments);

// `tensord front`, which only the supervisor starts: options, then the socket list.
int Front(const Arguments& arguments);

// `tensord check`: 0 if a server of this command line would start and serve, 1 if not.
int Check(const Arguments& arguments);

// `tensord version`
int Version(const Arguments& arguments);

// `tensord bench`: load on a server, and what it took.
int Bench(const Arguments& arguments);

// `tensord doctor`: 0 when nothing is worse than worth knowing, 1 with warnings, 2 with errors.
int Doctor(const Arguments& arguments);

// `tensord top`: what the machine does, live.
int Top(const Arguments& arguments);
// `tensord advise`: what holds it back; `tensord advise cost`: own or rent.
int Advise(const Arguments& arguments);

// `tensord train`: the processes of a training job; see docs/training.md for its exit codes.
int Train(const Arguments& arguments);

// `tensord docs config`: the page docs/config.md on stdout.
int Docs(const Arguments& arguments);

}  // namespace tensord::cli
