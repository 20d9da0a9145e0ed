// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

// What tensord uses of TensorFlow's C API (tensorflow/c/c_api.h, tf_tensor.h, tf_tstring.h), which
// TensorFlow promises not to break. Declared here, because the runtime is opened at run time: the
// build needs no TensorFlow.
namespace tensord::engine {

// NOLINTBEGIN(readability-identifier-naming): TensorFlow's names.

struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length);
};
struct TF_DeviceList;
struct TF_Graph;
struct TF_Library;
struct TF_Operation;
struct TF_Session;
struct TF_SessionOptions;
struct TF_Status;
struct TF_Tensor;

struct TF_Output {
  TF_Operation* oper;
  int index;
};

// A string element of a TF_STRING tensor. Opaque: only the TF_String* functions look inside.
struct TF_TString {
  alignas(8) unsigned char opaque[24];
};

// NOLINTEND(readability-identifier-naming)

using TF_Deallocator = void(void* data, size_t length, void* argument);

// Every function of the runtime that a worker calls: X(result, name, parameters).
#define TENSORD_TF_FUNCTIONS(X)                                                                   \
  X(const char*, TF_Version, (void))                                                              \
  X(TF_Status*, TF_NewStatus, (void))                                                             \
  X(void, TF_DeleteStatus, (TF_Status*))                                                          \
  X(int, TF_GetCode, (const TF_Status*))                                                          \
  X(const char*, TF_Message, (const TF_Status*))                                                  \
  X(TF_Buffer*, TF_NewBuffer, (void))                                                             \
  X(TF_Buffer*, TF_NewBufferFromString, (const void*, size_t))                                    \
  X(void, TF_DeleteBuffer, (TF_Buffer*))                                                          \
  X(TF_Library*, TF_LoadLibrary, (const char*, TF_Status*))                                       \
  X(void, TF_DeleteLibraryHandle, (TF_Library*))                                                  \
  X(TF_SessionOptions*, TF_NewSessionOptions, (void))                                             \
  X(void, TF_DeleteSessionOptions, (TF_SessionOptions*))                                          \
  X(void, TF_SetConfig, (TF_SessionOptions*, const void*, size_t, TF_Status*))                    \
  X(TF_Graph*, TF_NewGraph, (void))                                                               \
  X(void, TF_DeleteGraph, (TF_Graph*))                                                            \
  X(TF_Operation*, TF_GraphOperationByName, (TF_Graph*, const char*))                             \
  X(int, TF_OperationNumOutputs, (TF_Operation*))                                                 \
  X(TF_Session*, TF_LoadSessionFromSavedModel,                                                    \
    (const TF_SessionOptions*, const TF_Buffer*, const char*, const char* const*, int, TF_Graph*, \
     TF_Buffer*, TF_Status*))                                                                     \
  X(void, TF_CloseSession, (TF_Session*, TF_Status*))                                             \
  X(void, TF_DeleteSession, (TF_Session*, TF_Status*))                                            \
  X(TF_DeviceList*, TF_SessionListDevices, (TF_Session*, TF_Status*))                             \
  X(int, TF_DeviceListCount, (const TF_DeviceList*))                                              \
  X(const char*, TF_DeviceListName, (const TF_DeviceList*, int, TF_Status*))                      \
  X(void, TF_DeleteDeviceList, (TF_DeviceList*))                                                  \
  X(void, TF_SessionRun,                                                                          \
    (TF_Session*, const TF_Buffer*, const TF_Output*, TF_Tensor* const*, int, const TF_Output*,   \
     TF_Tensor**, int, const TF_Operation* const*, int, TF_Buffer*, TF_Status*))                  \
  X(TF_Tensor*, TF_NewTensor, (int, const int64_t*, int, void*, size_t, TF_Deallocator*, void*))  \
  X(TF_Tensor*, TF_AllocateTensor, (int, const int64_t*, int, size_t))                            \
  X(void, TF_DeleteTensor, (TF_Tensor*))                                                          \
  X(int, TF_TensorType, (const TF_Tensor*))                                                       \
  X(int, TF_NumDims, (const TF_Tensor*))                                                          \
  X(int64_t, TF_Dim, (const TF_Tensor*, int))                                                     \
  X(size_t, TF_TensorByteSize, (const TF_Tensor*))                                                \
  X(void*, TF_TensorData, (const TF_Tensor*))                                                     \
  X(void, TF_StringInit, (TF_TString*))                                                           \
  X(void, TF_StringCopy, (TF_TString*, const char*, size_t))                                      \
  X(const char*, TF_StringGetDataPointer, (const TF_TString*))                                    \
  X(size_t, TF_StringGetSize, (const TF_TString*))                                                \
  X(void, TF_StringDealloc, (TF_TString*))

// The functions, resolved.
struct TensorFlowApi {
#define TENSORD_TF_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  TENSORD_TF_FUNCTIONS(TENSORD_TF_MEMBER)
#undef TENSORD_TF_MEMBER
};

}  // namespace tensord::engine
