// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

// What tensord uses of LiteRT's C API (litert/c/*.h), as libLiteRt.so of the Python package
// ai-edge-litert 2.2 and 2.3 exports it. Declared here, because the library is opened at run time:
// the build needs none. (That library exports none of TensorFlow Lite's older C API.)
namespace tensord::engine {

// NOLINTBEGIN(readability-identifier-naming): LiteRT's names.

struct LiteRtEnvironment;
struct LiteRtModel;
struct LiteRtSubgraph;
struct LiteRtSignature;
struct LiteRtTensor;
struct LiteRtOp;
struct LiteRtOptions;
struct LiteRtOpaqueOptions;
struct LiteRtCompiledModel;
struct LiteRtTensorBuffer;

enum LiteRtStatus : int {
  kLiteRtStatusOk = 0,
  kLiteRtStatusErrorInvalidArgument = 1,
  kLiteRtStatusErrorMemoryAllocationFailure = 2,
  kLiteRtStatusErrorUnsupported = 5,
  kLiteRtStatusErrorNotFound = 6,
  kLiteRtStatusErrorFileIO = 500,
  kLiteRtStatusErrorInvalidFlatbuffer = 501,
};

inline constexpr int kLiteRtMaxRank = 8;

struct LiteRtLayout {
  uint32_t rank : 7;
  uint32_t has_strides : 1;
  int32_t dimensions[kLiteRtMaxRank];  // Below zero: open.
  uint32_t strides[kLiteRtMaxRank];
};

// Of a tensor whose rank is known.
struct LiteRtRankedTensorType {
  int32_t element_type;  // TensorFlow Lite's number.
  LiteRtLayout layout;
};
static_assert(sizeof(LiteRtRankedTensorType) == 72);

struct LiteRtEnvOption {
  int32_t tag;
  struct {
    int32_t type;
    int64_t value;
  } value;
};
static_assert(sizeof(LiteRtEnvOption) == 24);

// NOLINTEND(readability-identifier-naming)

inline constexpr int kLiteRtEnvOptionTagAutoRegisterAccelerators = 24;
inline constexpr int kLiteRtEnvOptionTagMinLoggerSeverity = 25;
inline constexpr int kLiteRtAnyTypeInt = 2;
inline constexpr int kLiteRtHwAcceleratorCpu = 1;
inline constexpr int kLiteRtRankedTensorTypeId = 0;

// The key that LiteRT gives to the only signature of a model that has none of its own.
inline constexpr char kLiteRtNoSignature[] = "<placeholder signature>";

// Every function of the library that a worker calls: X(result, name, parameters). The last one is
// not called: only versions whose functions have these parameters have it.
#define TENSORD_LITERT_FUNCTIONS(X)                                                             \
  X(LiteRtStatus, LiteRtCreateEnvironment, (int, const LiteRtEnvOption*, LiteRtEnvironment**))  \
  X(void, LiteRtDestroyEnvironment, (LiteRtEnvironment*))                                       \
  X(LiteRtStatus, LiteRtCreateModelFromFile, (LiteRtEnvironment*, const char*, LiteRtModel**))  \
  X(void, LiteRtDestroyModel, (LiteRtModel*))                                                   \
  X(LiteRtStatus, LiteRtGetModelMetadata, (LiteRtModel*, const char*, const void**, size_t*))   \
  X(LiteRtStatus, LiteRtGetNumModelSubgraphs, (LiteRtModel*, size_t*))                          \
  X(LiteRtStatus, LiteRtGetModelSubgraph, (LiteRtModel*, size_t, LiteRtSubgraph**))             \
  X(LiteRtStatus, LiteRtGetMainModelSubgraphIndex, (LiteRtModel*, size_t*))                     \
  X(LiteRtStatus, LiteRtGetNumModelSignatures, (LiteRtModel*, size_t*))                         \
  X(LiteRtStatus, LiteRtGetModelSignature, (LiteRtModel*, size_t, LiteRtSignature**))           \
  X(LiteRtStatus, LiteRtGetSignatureKey, (LiteRtSignature*, const char**))                      \
  X(LiteRtStatus, LiteRtGetSignatureSubgraph, (LiteRtSignature*, LiteRtSubgraph**))             \
  X(LiteRtStatus, LiteRtGetNumSignatureInputs, (LiteRtSignature*, size_t*))                     \
  X(LiteRtStatus, LiteRtGetSignatureInputName, (LiteRtSignature*, size_t, const char**))        \
  X(LiteRtStatus, LiteRtGetSignatureInputTensorByIndex,                                         \
    (LiteRtSignature*, size_t, LiteRtTensor**))                                                 \
  X(LiteRtStatus, LiteRtGetNumSignatureOutputs, (LiteRtSignature*, size_t*))                    \
  X(LiteRtStatus, LiteRtGetSignatureOutputName, (LiteRtSignature*, size_t, const char**))       \
  X(LiteRtStatus, LiteRtGetSignatureOutputTensorByIndex,                                        \
    (LiteRtSignature*, size_t, LiteRtTensor**))                                                 \
  X(LiteRtStatus, LiteRtGetNumSubgraphInputs, (LiteRtSubgraph*, size_t*))                       \
  X(LiteRtStatus, LiteRtGetSubgraphInput, (LiteRtSubgraph*, size_t, LiteRtTensor**))            \
  X(LiteRtStatus, LiteRtGetNumSubgraphOutputs, (LiteRtSubgraph*, size_t*))                      \
  X(LiteRtStatus, LiteRtGetSubgraphOutput, (LiteRtSubgraph*, size_t, LiteRtTensor**))           \
  X(LiteRtStatus, LiteRtGetNumSubgraphOps, (LiteRtSubgraph*, size_t*))                          \
  X(LiteRtStatus, LiteRtGetSubgraphOp, (LiteRtSubgraph*, size_t, LiteRtOp**))                   \
  X(LiteRtStatus, LiteRtGetOpCode, (LiteRtOp*, int*))                                           \
  X(LiteRtStatus, LiteRtGetTensorName, (LiteRtTensor*, const char**))                           \
  X(LiteRtStatus, LiteRtGetTensorTypeId, (LiteRtTensor*, int*))                                 \
  X(LiteRtStatus, LiteRtGetRankedTensorType, (LiteRtTensor*, LiteRtRankedTensorType*))          \
  X(LiteRtStatus, LiteRtGetUnrankedTensorType, (LiteRtTensor*, int32_t*))                       \
  X(LiteRtStatus, LiteRtCreateOptions, (LiteRtOptions**))                                       \
  X(void, LiteRtDestroyOptions, (LiteRtOptions*))                                               \
  X(LiteRtStatus, LiteRtSetOptionsHardwareAccelerators, (LiteRtOptions*, int))                  \
  X(LiteRtStatus, LiteRtCreateOpaqueOptions,                                                    \
    (const char*, void*, void (*)(void*), LiteRtOpaqueOptions**))                               \
  X(LiteRtStatus, LiteRtAddOpaqueOptions, (LiteRtOptions*, LiteRtOpaqueOptions*))               \
  X(LiteRtStatus, LiteRtCreateCompiledModel,                                                    \
    (LiteRtEnvironment*, LiteRtModel*, LiteRtOptions*, LiteRtCompiledModel**))                  \
  X(void, LiteRtDestroyCompiledModel, (LiteRtCompiledModel*))                                   \
  X(LiteRtStatus, LiteRtCompiledModelResizeInputTensorNonStrict,                                \
    (LiteRtCompiledModel*, size_t, size_t, const int*, size_t))                                 \
  X(LiteRtStatus, LiteRtGetCompiledModelOutputTensorLayouts,                                    \
    (LiteRtCompiledModel*, size_t, size_t, LiteRtLayout*, bool))                                \
  X(LiteRtStatus, LiteRtRunCompiledModel,                                                       \
    (LiteRtCompiledModel*, size_t, size_t, LiteRtTensorBuffer**, size_t, LiteRtTensorBuffer**)) \
  X(LiteRtStatus, LiteRtCompiledModelGetErrorMessages, (LiteRtCompiledModel*, char**))          \
  X(LiteRtStatus, LiteRtCompiledModelClearErrors, (LiteRtCompiledModel*))                       \
  X(LiteRtStatus, LiteRtCreateTensorBufferFromHostMemory,                                       \
    (const LiteRtRankedTensorType*, void*, size_t, void (*)(void*), LiteRtTensorBuffer**))      \
  X(void, LiteRtDestroyTensorBuffer, (LiteRtTensorBuffer*))                                     \
  X(void, LiteRtExternalLiteRtBufferContextGetRunOptions, (void))

struct LiteRtApi {
#define TENSORD_LITERT_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  TENSORD_LITERT_FUNCTIONS(TENSORD_LITERT_MEMBER)
#undef TENSORD_LITERT_MEMBER
};

}  // namespace tensord::engine
