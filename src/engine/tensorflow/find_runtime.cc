// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/find_runtime.h"

namespace tensord::engine {

const LibraryPackage& TensorFlowPackage() {
  static const LibraryPackage kPackage = {
      .libraries = {kFrameworkLibrary, kRuntimeLibrary},
      .package = "tensorflow",
      .option = "tensorflow_library_dir",
      .variable = "TENSORD_TENSORFLOW_DIR",
      .advice = "no TensorFlow runtime: install the tensorflow-cpu 2.21 wheel"};
  return kPackage;
}

}  // namespace tensord::engine
