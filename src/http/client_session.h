// The calling side's protocols as state machines: calls in, bytes out; bytes in, answers out. For client*.cc only.
// Thread safety: the client's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/client.h"
#include "http/exchange.h"
#include "http/http1_parser.h"
#include "http/output.h"

namespace keelson::http {

// One request and its answer.
class Call : public base::RefCounted {
 public:
  Call(ClientRequest request, base::Ref<WakeQueue> queue)
      : request(std::move(request)), exchange(base::MakeRef<Exchange>(queue, nullptr)) {}

  void Answer(ResponseHead head);
  void Fail(ClientError error);
  bool answered() const { return head.has_value(); }

  ClientRequest request;
  base::Ref<Exchange> exchange;  // the answer's body
  std::optional<ResponseHead> head;
  std::optional<ClientError> error;
  bool retriable = false;  // failed before the server can have acted on it
  bool upgraded = false;
  std::function<void()> waiter;  // of whoever waits for `head` or `error`
};

class ClientSessionHost {
 public:
  virtual void WantWrite() = 0;
  virtual const base::Ref<WakeQueue>& wake_queue() const = 0;

 protected:
  ~ClientSessionHost() = default;
};

class ClientSession {
 public:
  virtual ~ClientSession() = default;
  virtual bool Available() const = 0;  // takes another call now
  virtual bool Idle() const = 0;       // has no call under way
  virtual void Start(base::Ref<Call> call) = 0;
  virtual void Cancel(Call& call) = 0;  // the rest of its response is not needed
  virtual void Receive(std::string_view bytes) = 0;
  virtual void ReceiveEnd() = 0;
  virtual bool wants_input() const = 0;
  virtual void Produce(Output& out, std::size_t budget) = 0;
  virtual bool finished() const = 0;
  virtual void Abort(const ClientError& error) = 0;
  virtual bool Ping() { return false; }  // sends a ping; false if the protocol has none
  virtual std::string TakeLeftover() { return {}; }
};

std::unique_ptr<ClientSession> NewHttp1ClientSession(ClientSessionHost& host, const std::string& host_header,
                                                     std::size_t header_bytes_max);
std::unique_ptr<ClientSession> NewHttp2ClientSession(ClientSessionHost& host, const std::string& host_header, bool tls,
                                                     std::size_t header_bytes_max);

}  // namespace keelson::http
