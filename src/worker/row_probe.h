// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "engine/engine.h"
#include "tensor/tensor.h"

namespace tensord::worker {

// Runs a signature on rows of random values, each alone and all together in two orders, and
// compares what comes out. Empty when every row came out the same (as far as the arithmetic of
// another batch size may round), and not all rows alike; otherwise the reason why requests should
// not share its runs. Of a graph of plain operations (engine/tensorflow/plain_ops.h) this tells
// whether the rows of a batch depend on each other; of others it does not.
//
// `kept`: inputs that the runtime still reads. REQUIRES: the model is not stateful.
std::string WhyRowsDepend(engine::Model& model, size_t signature,
                          std::vector<tensor::Tensor>* kept);

}  // namespace tensord::worker
