// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "predictor.h"

// Servers of the shapes that are usual for TensorFlow: small, complete in what they do, and no
// product. Each listens on 127.0.0.1, prints "listening PORT" and serves until it is ended; false
// when it could not listen.
namespace tensord::peers {

// gRPC's synchronous API: a thread a call, as tensorflow_model_server uses it.
bool ServeGrpcSync(const Runners& runners, int port);

// gRPC's completion queues, one a thread, each thread running the model itself.
bool ServeGrpcQueues(const Runners& runners, int port, int threads);

// libevent's evhttp in one thread; each request handed to a pool, read with a RapidJSON DOM into a
// PredictRequest, its answer written by RapidJSON and handed back: tensorflow_model_server's REST.
bool ServeEvhttp(const Runners& runners, int port, int threads);

// One line that whoever started this reads.
void SayListening(int port);

}  // namespace tensord::peers
