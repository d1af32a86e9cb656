#include "app/pki.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "app/data_dir.h"
#include "app/files.h"
#include "app/x509.h"
#include "base/strings.h"

namespace keelson::app {
namespace {

using namespace std::chrono_literals;
constexpr auto kDay = 24h;

class ManualClock final : public base::Clock {
 public:
  SystemTime Now() const override { return now; }
  SteadyTime Monotonic() const override { return {}; }
  SystemTime now{1'794'801'600s};
};

class PKITest : public ::testing::Test {
 protected:
  PKITest() {
    std::string folder = ::testing::TempDir() + "keelson-pki-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    request_ = {.directory = folder_ + "/pki",
                .dns_names = {"kubernetes", "localhost"},
                .ip_addresses = {"127.0.0.1", "10.0.0.1"}};
  }
  ~PKITest() override { std::filesystem::remove_all(folder_); }

  static x509::Certificate Certificate(const std::string& path) {
    return *x509::Certificate::Parse(*ReadSmallFile(path));
  }
  static mode_t Mode(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  }

  ManualClock clock_;
  std::string folder_;
  PKIRequest request_;
};

TEST_F(PKITest, FirstStartMakesEverything) {
  auto made = EnsurePKI(request_, clock_);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_TRUE(made->made_ca);
  EXPECT_EQ(made->made.size(), 8u);
  const PKIFiles& files = made->files;
  for (const std::string& key : {files.ca_key, files.serving_key, files.admin_key, files.sa_key})
    EXPECT_EQ(Mode(key), 0600) << key;

  const auto authority = Certificate(files.ca_cert), serving = Certificate(files.serving_cert),
             admin = Certificate(files.admin_cert);
  EXPECT_TRUE(authority.SignedBy(authority));
  EXPECT_TRUE(serving.SignedBy(authority));
  EXPECT_TRUE(admin.SignedBy(authority));
  EXPECT_FALSE(authority.SignedBy(serving));
  EXPECT_TRUE(serving.Covers({"kubernetes", "localhost"}, {"127.0.0.1", "10.0.0.1"}));
  EXPECT_FALSE(serving.Covers({"elsewhere"}, {}));
  EXPECT_EQ(admin.common_name(), "admin");
  EXPECT_EQ(admin.organizations(), std::vector<std::string>{"system:masters"});
  EXPECT_LE(serving.not_before(), clock_.now);
  EXPECT_GT(serving.not_after(), clock_.now + 300 * kDay);
  EXPECT_TRUE(serving.BelongsTo(*x509::Key::Parse(*ReadSmallFile(files.serving_key))));
  EXPECT_EQ(x509::Key::Parse(*ReadSmallFile(files.sa_key))->PublicPEM(), *ReadSmallFile(files.sa_pub));
  for (const auto& entry : std::filesystem::directory_iterator(request_.directory)) {
    EXPECT_EQ(entry.path().filename().string().find(".XXX"), std::string::npos);
  }
}

TEST_F(PKITest, SecondStartChangesNothing) {
  ASSERT_TRUE(EnsurePKI(request_, clock_).ok());
  auto again = EnsurePKI(request_, clock_);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->made.empty());
}

TEST_F(PKITest, LeavesAreRenewedBeforeTheirEnd) {
  auto first = EnsurePKI(request_, clock_);
  ASSERT_TRUE(first.ok());
  clock_.now += 300 * kDay;
  EXPECT_TRUE(EnsurePKI(request_, clock_)->made.empty());
  clock_.now += 40 * kDay;
  auto renewed = EnsurePKI(request_, clock_);
  ASSERT_TRUE(renewed.ok());
  EXPECT_FALSE(renewed->made_ca);
  EXPECT_EQ(renewed->made.size(), 4u);  // serving and admin
  EXPECT_GT(Certificate(first->files.serving_cert).not_after(), clock_.now + 300 * kDay);
}

TEST_F(PKITest, AuthorityIsRenewedAndEverythingWithIt) {
  auto first = EnsurePKI(request_, clock_);
  ASSERT_TRUE(first.ok());
  const std::string service_account_key = *ReadSmallFile(first->files.sa_key);
  clock_.now += 9 * 365 * kDay + 10 * kDay;
  auto renewed = EnsurePKI(request_, clock_);
  ASSERT_TRUE(renewed.ok());
  EXPECT_TRUE(renewed->made_ca);
  EXPECT_TRUE(Certificate(first->files.serving_cert).SignedBy(Certificate(first->files.ca_cert)));
  EXPECT_EQ(*ReadSmallFile(first->files.sa_key), service_account_key) << "issued tokens stay valid";
}

TEST_F(PKITest, NewNamesGiveANewServingCertificate) {
  ASSERT_TRUE(EnsurePKI(request_, clock_).ok());
  request_.ip_addresses.push_back("192.0.2.7");
  auto again = EnsurePKI(request_, clock_);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->made.size(), 2u);
  EXPECT_TRUE(Certificate(again->files.serving_cert).Covers({}, {"192.0.2.7"}));
}

TEST_F(PKITest, PairTornByACrashIsMadeAnew) {
  auto first = EnsurePKI(request_, clock_);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(WriteFileAtomically(first->files.serving_key, x509::Key::Generate(x509::KeyType::kEC)->PEM(), 0600).ok());
  auto again = EnsurePKI(request_, clock_);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->made.size(), 2u);
}

TEST_F(PKITest, ForeignFileIsAnErrorAndKept) {
  auto first = EnsurePKI(request_, clock_);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(WriteFileAtomically(first->files.ca_key, "not a key", 0600).ok());
  auto again = EnsurePKI(request_, clock_);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message(), first->files.ca_key + ": not a PEM private key; remove it to have a new one made");
  EXPECT_EQ(*ReadSmallFile(first->files.ca_key), "not a key");
}

TEST_F(PKITest, LostKeysAreRefusedAndNothingIsMade) {
  auto first = EnsurePKI(request_, clock_);
  ASSERT_TRUE(first.ok());
  const PKIFiles& files = first->files;
  struct Case {
    const char* name;
    std::string lost, other;
  };
  const Case cases[] = {{"authority's key", files.ca_key, files.ca_cert},
                        {"authority's certificate", files.ca_cert, files.ca_key},
                        {"service account key", files.sa_key, files.sa_pub}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string kept = *ReadSmallFile(c.lost), other = *ReadSmallFile(c.other);
    std::filesystem::remove(c.lost);
    auto again = EnsurePKI(request_, clock_);
    ASSERT_FALSE(again.ok());
    EXPECT_TRUE(again.error().message().starts_with(c.lost + " is missing, but " + c.other + " is there; put it back"))
        << again.error().message();
    EXPECT_FALSE(FileExists(c.lost));
    EXPECT_EQ(*ReadSmallFile(c.other), other);
    ASSERT_TRUE(WriteFileAtomically(c.lost, kept, 0600).ok());
    ASSERT_TRUE(EnsurePKI(request_, clock_).ok());
  }
  // Junk beside a lost key is kept too.
  std::filesystem::remove(files.ca_key);
  ASSERT_TRUE(WriteFileAtomically(files.ca_cert, "junk", 0644).ok());
  EXPECT_FALSE(EnsurePKI(request_, clock_).ok());
  EXPECT_EQ(*ReadSmallFile(files.ca_cert), "junk");
}

TEST_F(PKITest, ForeignAuthorityKeyIsRefused) {
  auto first = EnsurePKI(request_, clock_);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(WriteFileAtomically(first->files.ca_key, x509::Key::Generate(x509::KeyType::kEC)->PEM(), 0600).ok());
  EXPECT_FALSE(EnsurePKI(request_, clock_).ok());
  clock_.now += 9 * 365 * kDay + 10 * kDay;  // in the year of the renewal it is what a crash leaves
  EXPECT_TRUE(EnsurePKI(request_, clock_).ok());
}

TEST_F(PKITest, TornFirstStartIsFinished) {
  auto first = EnsurePKI(request_, clock_);
  ASSERT_TRUE(first.ok());
  for (const auto& entry : std::filesystem::directory_iterator(request_.directory)) {
    if (entry.path() != first->files.ca_key) std::filesystem::remove(entry.path());
  }
  auto again = EnsurePKI(request_, clock_);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_TRUE(again->made_ca);
}

TEST_F(PKITest, FolderThatCannotBeMade) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/file", "x", 0600).ok());
  request_.directory = folder_ + "/file/pki";
  auto made = EnsurePKI(request_, clock_);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message().find('\n'), std::string::npos);
}

TEST_F(PKITest, Kubeconfig) {
  auto made = EnsurePKI(request_, clock_);
  ASSERT_TRUE(made.ok());
  const std::string path = folder_ + "/admin.kubeconfig";
  auto written = EnsureKubeconfig(path, "https://127.0.0.1:6443", made->files);
  ASSERT_TRUE(written.ok()) << written.error().message();
  EXPECT_TRUE(*written);
  EXPECT_FALSE(*EnsureKubeconfig(path, "https://127.0.0.1:6443", made->files));
  EXPECT_EQ(Mode(path), 0600);
  const std::string text = *ReadSmallFile(path);
  EXPECT_NE(text.find("    server: https://127.0.0.1:6443\n"), std::string::npos);
  EXPECT_NE(text.find(base::Base64Encode(*ReadSmallFile(made->files.ca_cert))), std::string::npos);
}

TEST_F(PKITest, SelfSignedPairOfCertDir) {
  const SelfSignedRequest request{.directory = folder_ + "/certs",
                                  .host = "192.0.2.2",
                                  .ip_addresses = {"192.0.2.2", "10.0.0.1"},
                                  .dns_names = {"kubernetes"}};
  auto made = MaybeDefaultWithSelfSignedCerts(request, clock_);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_TRUE(*made);
  const std::string bundle = *ReadSmallFile(request.directory + "/apiserver.crt");
  const auto leaf = *x509::Certificate::Parse(bundle);
  const auto authority = *x509::Certificate::Parse(bundle.substr(bundle.find("-----BEGIN", 10)));
  EXPECT_EQ(leaf.common_name(), "192.0.2.2@1794801600");
  EXPECT_EQ(authority.common_name(), "192.0.2.2-ca@1794801600");
  EXPECT_TRUE(leaf.SignedBy(authority));
  EXPECT_TRUE(leaf.Covers({"kubernetes"}, {"10.0.0.1"}));
  EXPECT_TRUE(ReadSmallFile(request.directory + "/apiserver.key")->starts_with("-----BEGIN RSA PRIVATE KEY-----"));
  EXPECT_FALSE(*MaybeDefaultWithSelfSignedCerts(request, clock_));
  std::filesystem::remove(request.directory + "/apiserver.key");
  EXPECT_FALSE(MaybeDefaultWithSelfSignedCerts(request, clock_).ok());
}

TEST_F(PKITest, DataFolderHasOneOwner) {
  auto first = DataDir::Open(folder_ + "/data");
  ASSERT_TRUE(first.ok()) << first.error().message();
  auto second = DataDir::Open(folder_ + "/data");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message(),
            "data folder " + folder_ + "/data is in use by process " + std::to_string(::getpid()));
  EXPECT_EQ(Mode(folder_ + "/data"), 0700);
}

TEST_F(PKITest, MemoryFolderGoesAway) {
  std::string path;
  {
    auto data = DataDir::Open(":memory:");
    ASSERT_TRUE(data.ok());
    path = data->path();
    EXPECT_TRUE(FileExists(path));
  }
  EXPECT_FALSE(FileExists(path));
}

}  // namespace
}  // namespace keelson::app
