// Client interface for admission webhooks. Implemented over the outgoing transport; tests have a fake.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "admission/plugin_table.h"
#include "admission/webhook/configurations.h"
#include "async/awaitable.h"
#include "async/cancellation.h"
#include "base/clock.h"
#include "base/outcome.h"
#include "telemetry/span.h"

namespace keelson::admission {

struct WebhookAnswer {
  int status = 200;
  std::string content_type;
  std::string body;
};

struct WebhookFailure {
  std::string text;        // as after "failed to call webhook: "
  int code = 503;          // for metrics: that of the Status upstream makes of it
  bool no_client = false;  // nothing was sent: the configuration cannot be used
};

// Thread safety: all members from any I/O thread.
class WebhookClients {
 public:
  virtual ~WebhookClients() = default;
  // POSTs `body`, which must be answered by `deadline`, as a child of `span`. Answers of 400 and above are failures.
  // `cancellation` may be null.
  virtual Awaitable<Outcome<WebhookAnswer, WebhookFailure>> Post(WebhookPtr webhook, std::string body,
                                                                 base::Clock::SteadyTime deadline,
                                                                 async::CancellationPtr cancellation,
                                                                 telemetry::Span span) = 0;
};

// Answers larger than this fail the call. Upstream reads without a bound.
inline constexpr std::size_t kResponseBytesMax = 16 * 1024 * 1024;

// Over the outgoing transport, with the credentials of the plugin's kubeconfig file.
std::unique_ptr<WebhookClients> NewWebhookClients(const PluginContext& context, std::string_view plugin);
// Why a WebhookAdmissionConfiguration cannot be used; "" when it can.
std::string CheckWebhookConfiguration(Value configuration);

}  // namespace keelson::admission
