// Errors for unreadable values, with the gate AllowUnsafeMalformedObjectDeletion and without it, and their
// deletion.
#include <gtest/gtest.h>

#include <boost/asio/use_future.hpp>

#include "async/io_pool.h"
#include "base/fake_clock.h"
#include "kv/memory/memory.h"
#include "storage/contract_suite/contract.h"
#include "storage/store.h"
#include "testing/line_codec.h"

namespace keelson::storage {
namespace {

// Refuses what looks encrypted, as identity does.
constexpr std::string_view kSealed = "k8s:enc:aesgcm:v1:key1:0123";
constexpr std::string_view kGarbage = "this is no object";

class CorruptObjects : public ::testing::TestWithParam<bool> {
 protected:
  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io_.Next(), std::move(task), asio::use_future).get();
  }
  void Put(const std::string& name, std::string_view value) {
    kv::TxnRequest request;
    request.success.push_back(kv::Op::Put({.key = "/registry/pods/default/" + name, .value = kv::SharedBytes(value)}));
    ASSERT_TRUE(Await(kv_->Txn(std::move(request))).ok());
  }
  void PutPod(const std::string& name) { Put(name, "line/v1\nname=" + name + "\nnamespace=default\nuid=\ndata=\n"); }
  bool gate() const { return GetParam(); }

  async::IOPool io_{1};
  base::FakeClock clock_;
  std::unique_ptr<kv::Store> kv_ = kv::memory::Open();
  testing::LineCodec codec_;
  LeaseManager leases_{*kv_, clock_};
  Store store_{{.kv = *kv_, .codec = codec_, .leases = leases_},
               {.resource_prefix = "/pods", .report_corrupt = GetParam()}};
};

TEST_P(CorruptObjects, ReadErrorsNameTheKeys) {
  PutPod("a");
  Put("garbage", kGarbage);
  Put("sealed", kSealed);
  const auto garbage = Await(store_.Get("/pods/default/garbage", {}));
  ASSERT_FALSE(garbage.ok());
  const auto sealed = Await(store_.Get("/pods/default/sealed", {}));
  ASSERT_FALSE(sealed.ok());
  const auto list = Await(store_.GetList("/pods", {}));
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(store_.decode_errors(), 2u);  // the encrypted one fails before decoding
  if (!gate()) {
    EXPECT_EQ(garbage.error().ToString(), "the text is no object");
    EXPECT_EQ(sealed.error().code, ErrorCode::kInternal);
    EXPECT_EQ(sealed.error().ToString(), "identity transformer tried to read encrypted data");
    EXPECT_EQ(list.error().ToString(), "the text is no object");
    return;
  }
  EXPECT_EQ(garbage.error().ToString(),
            "StorageError: corrupt object, Code: 7, Key: /pods/default/garbage, ResourceVersion: 0, "
            "AdditionalErrorMsg: object not decodable revision=3: the text is no object");
  EXPECT_EQ(sealed.error().ToString(),
            "StorageError: corrupt object, Code: 7, Key: /pods/default/sealed, ResourceVersion: 0, "
            "AdditionalErrorMsg: data from the storage is not transformable revision=0: identity transformer tried to "
            "read encrypted data");
  const meta::Status& status = *list.error().status;
  EXPECT_EQ(status.code(), 500);
  EXPECT_EQ(status.reason(), meta::StatusReason::kStoreReadError);
  EXPECT_EQ(status.message(), "failed to read one or more pods from the storage");
  ASSERT_EQ(status.details()->causes.size(), 2u);
  EXPECT_EQ(status.details()->causes[0].field, "/registry/pods/default/garbage");
  EXPECT_EQ(status.details()->causes[1].field, "/registry/pods/default/sealed");
}

TEST_P(CorruptObjects, ListReportsUpToAHundred) {
  for (int i = 0; i < 103; ++i) Put("x" + std::to_string(1000 + i), kGarbage);
  const auto list = Await(store_.GetList("/pods", {}));
  ASSERT_FALSE(list.ok());
  if (!gate()) return;
  const auto& causes = list.error().status->details()->causes;
  ASSERT_EQ(causes.size(), 101u);
  EXPECT_EQ(causes.back().reason, "FieldValueTooMany");
  EXPECT_EQ(causes.back().message, "too many errors, the list is truncated");
}

TEST_P(CorruptObjects, ChangesFail) {
  Put("garbage", kGarbage);
  const auto deleted = Await(store_.Delete("/pods/default/garbage", {}, {}));
  ASSERT_FALSE(deleted.ok());
  EXPECT_EQ(deleted.error().ToString(),
            gate() ? "object not decodable revision=2: the text is no object" : "the text is no object");
}

TEST_P(CorruptObjects, AreDeletedUnread) {
  Put("garbage", kGarbage);
  EXPECT_TRUE(Await(store_.DeleteUnread("/pods/default/garbage")).ok());
  const auto again = Await(store_.DeleteUnread("/pods/default/garbage"));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kKeyNotFound);
  EXPECT_TRUE(Await(store_.GetList("/pods", {})).ok());
}

TEST_P(CorruptObjects, AWatchEndsWithTheFirst) {
  struct Case {
    const char* name;
    std::string_view value;
    bool deleted;
    const char* with;
    const char* without;
  };
  constexpr std::string_view kNoObject = "ERROR 500 Internal error occurred: the text is no object";
  const Case cases[] = {
      {"garbage", kGarbage, false, kNoObject.data(), kNoObject.data()},
      {"garbage, deleted", kGarbage, true, kNoObject.data(), kNoObject.data()},
      {"sealed", kSealed, false,
       "ERROR 500 Internal error occurred: data from the storage is not transformable revision=0: identity "
       "transformer tried to read encrypted data",
       "ERROR 500 Internal error occurred: identity transformer tried to read encrypted data"},
      {"sealed, deleted", kSealed, true,
       "ERROR 500 saw a DELETED event, but object data is corrupt - data from the storage is not transformable "
       "revision=0: identity transformer tried to read encrypted data",
       "ERROR 500 Internal error occurred: identity transformer tried to read encrypted data"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    if (c.deleted) Put("x", c.value);
    const auto now = Await(kv_->CurrentRevision());
    if (c.deleted) {
      ASSERT_TRUE(Await(store_.DeleteUnread("/pods/default/x")).ok());
    } else {
      Put("x", c.value);
    }
    StreamReader watch(*Await(store_.Watch("/pods", {.resource_version = std::to_string(*now)})));
    EXPECT_EQ(watch.NextText(), gate() ? c.with : c.without);
    EXPECT_EQ(watch.NextText(), "END");
    if (!c.deleted) ASSERT_TRUE(Await(store_.DeleteUnread("/pods/default/x")).ok());
  }
}

// A watch may begin at the compact revision itself, where the value before the change is gone.
TEST_P(CorruptObjects, AWatchEndsWithAChangeOfACompactedValue) {
  PutPod("x");
  PutPod("x");
  const auto before = *Await(kv_->CurrentRevision());
  for (const bool deletion : {false, true}) {
    SCOPED_TRACE(deletion ? "DELETE" : "PUT");
    if (deletion) {
      ASSERT_TRUE(Await(store_.DeleteUnread("/pods/default/x")).ok());
    } else {
      PutPod("x");
    }
    const auto changed = *Await(kv_->CurrentRevision());
    ASSERT_EQ(changed, before + (deletion ? 2 : 1));
    ASSERT_TRUE(Await(kv_->Compact(changed, true)).ok());
    StreamReader watch(*Await(store_.Watch("/pods", {.resource_version = std::to_string(changed - 1)})));
    EXPECT_EQ(watch.NextText(),
              "ERROR 500 Internal error occurred: etcd event received with PrevKv=nil "
              "(key=\"/registry/pods/default/x\", modRevision=" +
                  std::to_string(changed) + ", type=" + (deletion ? "DELETE)" : "PUT)"));
    EXPECT_EQ(watch.NextText(), "END");
  }
}

INSTANTIATE_TEST_SUITE_P(Gate, CorruptObjects, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "on" : "off"; });

}  // namespace
}  // namespace keelson::storage
