// Conversion of custom resources by a webhook: the ConversionReview that is sent, and the checks of what comes back.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apiextensions/conversion_metrics.h"
#include "apiextensions/custom_kind.h"
#include "async/awaitable.h"
#include "base/arena.h"
#include "base/outcome.h"
#include "base/shared_bytes.h"
#include "meta/status.h"
#include "object/value.h"
#include "telemetry/span.h"

namespace keelson::apiextensions {

// Client that ConversionReviews are sent with. Thread safety: from any thread.
class ConversionClient {
 public:
  virtual ~ConversionClient() = default;
  // The body of the answer; the error is the REST client's text. The call is a child of `span`.
  virtual Awaitable<Outcome<base::SharedBytes, std::string>> Post(std::string review, telemetry::Span span) = 0;
};

struct WebhookConversion {
  std::shared_ptr<ConversionClient> client;
  bool v1 = true;                              // the version of reviews; false: v1beta1, which has fewer checks
  std::string definition;                      // its name, for metrics
  std::shared_ptr<ConversionMetrics> metrics;  // null: calls are not counted
};
using WebhookConversionPtr = std::shared_ptr<const WebhookConversion>;

// So many objects go into one review.
inline constexpr std::size_t kConversionBatchMax = 100;

// The objects in `api_version`, in their order; each is of another version now. They and the result live in `arena`,
// which must outlive the call.
// Metadata but labels and annotations stays as it was. A plain 500 where the webhook fails or answers something else.
Awaitable<meta::Result<std::vector<Value>>> Convert(WebhookConversionPtr conversion, base::Arena& arena,
                                                    std::vector<Value> objects, std::string api_version,
                                                    telemetry::Span span = {});

// ---- Parts

std::string ReviewText(const WebhookConversion& conversion, std::string_view uid, const std::vector<Value>& objects,
                       std::string_view api_version);
struct ReviewError {
  std::string text;
  bool whole = false;  // else it follows `conversion webhook for <gvk> `
  ConversionFailure failure = ConversionFailure::kInvalidObject;
};
// Checks the review in `body` and takes the converted objects out of it.
Outcome<std::vector<Value>, ReviewError> ReadReview(const WebhookConversion& conversion, base::Arena& arena,
                                                    std::string_view body, std::string_view uid,
                                                    const std::vector<Value>& objects, std::string_view api_version);

}  // namespace keelson::apiextensions
