// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/thread.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "json.h"
#include "servers.h"

namespace tensord::peers {
namespace {

constexpr std::string_view kPrefix = "/v1/models/";
constexpr std::string_view kPredict = ":predict";
constexpr size_t kBodyBytesMax = 256u << 20;

// Threads that run what they are given, in order.
class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~Pool() {
    Add(nullptr);
    for (std::thread& thread : threads_) thread.join();
  }

  void Add(std::function<void()> task) {
    {
      const std::lock_guard<std::mutex> lock(mu_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

 private:
  void Work() {
    while (true) {
      std::unique_lock<std::mutex> lock(mu_);
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      if (tasks_.front() == nullptr) {  // The end, for all.
        changed_.notify_one();
        return;
      }
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
};

struct Site {
  const Runners& runners;
  event_base* base;
  Pool* pool;
};

// A request on its way to the pool and back to the thread of the event loop.
struct Call {
  Site* site;
  evhttp_request* request;
  int code = 200;
  std::string answer;
};

absl::Status PredictJson(const Runners& runners, const char* uri, const char* body,
                         std::string* answer) {
  std::string_view model = uri;
  if (!model.starts_with(kPrefix) || !model.ends_with(kPredict)) {
    return absl::NotFoundError("no such path");
  }
  model.remove_prefix(kPrefix.size());
  model.remove_suffix(kPredict.size());
  const auto found = runners.find(model);
  if (found == runners.end()) return absl::NotFoundError("no such model");
  tensorflow::serving::PredictRequest request;
  request.mutable_model_spec()->set_name(found->first);
  bool row_format = false;
  absl::Status status = ReadJson(body, found->second->signature(), &request, &row_format);
  tensorflow::serving::PredictResponse response;
  if (status.ok()) status = Predict(runners, request, &response);
  if (status.ok()) *answer = WriteJson(response, row_format);
  return status;
}

void Reply(evutil_socket_t, short, void* argument) {
  const std::unique_ptr<Call> call(static_cast<Call*>(argument));
  evkeyvalq* headers = evhttp_request_get_output_headers(call->request);
  evhttp_add_header(headers, "Content-Type", "application/json");
  evbuffer* out = evhttp_request_get_output_buffer(call->request);
  evbuffer_add(out, call->answer.data(), call->answer.size());
  evhttp_send_reply(call->request, call->code, nullptr, nullptr);
}

void Process(Call* call) {
  evbuffer* in = evhttp_request_get_input_buffer(call->request);
  std::string body(evbuffer_get_length(in), '\0');
  evbuffer_copyout(in, body.data(), body.size());
  const absl::Status status = PredictJson(
      call->site->runners, evhttp_request_get_uri(call->request), body.c_str(), &call->answer);
  if (!status.ok()) {
    call->code = absl::IsNotFound(status) ? 404 : 400;
    call->answer = base::Cat("{\"error\": \"", base::Message(status), "\"}");
  }
  const timeval at_once{};
  event_base_once(call->site->base, -1, EV_TIMEOUT, Reply, call, &at_once);
}

void Dispatch(evhttp_request* request, void* argument) {
  auto* site = static_cast<Site*>(argument);
  // Owned by the event loop again once it replies.
  Call* call =
      std::make_unique<Call>(Call{.site = site, .request = request, .answer = {}}).release();
  site->pool->Add([call] { Process(call); });
}

int BoundPort(evhttp_bound_socket* socket) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  getsockname(evhttp_bound_socket_get_fd(socket), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace

bool ServeEvhttp(const Runners& runners, int port, int threads) {
  evthread_use_pthreads();
  event_base* base = event_base_new();
  evhttp* http = evhttp_new(base);
  Pool pool(threads);
  Site site{runners, base, &pool};
  evhttp_set_max_body_size(http, kBodyBytesMax);
  evhttp_set_gencb(http, Dispatch, &site);
  evhttp_bound_socket* socket =
      evhttp_bind_socket_with_handle(http, "127.0.0.1", static_cast<uint16_t>(port));
  if (socket == nullptr) return false;
  SayListening(BoundPort(socket));
  event_base_dispatch(base);
  return true;
}

}  // namespace tensord::peers
