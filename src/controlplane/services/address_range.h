// The addresses of one service CIDR: which may be handed out, and in which order they are tried.
// A lower band is left to addresses that users choose; dynamic ones come from above it while there are any.
// Thread safety: const members from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "validation/net.h"

namespace keelson::controlplane {

class AddressRange {
 public:
  using Number = unsigned __int128;  // an address; IPv4 in the last 32 bits

  // Nothing for text that is not a CIDR, and for IPv6 prefixes shorter than 64.
  static std::optional<AddressRange> Parse(std::string_view cidr);

  bool is_ipv4() const { return ipv4_; }
  const std::string& cidr() const { return cidr_; }  // canonical: 10.0.0.0/16
  std::string network() const { return AddressAt(0); }
  // Can this address be handed out: neither the network's own nor, in IPv4, the broadcast address.
  bool Contains(const validation::IPAddress& address) const;
  Number size() const { return last_ >= first_ ? last_ - first_ + 1 : 0; }
  Number static_band() const { return band_; }
  // The address at network + index.
  std::string AddressAt(Number index) const { return Text(base_ + index); }

  // The addresses in the order dynamic allocation tries them: above the band from a random place on, wrapping, then the
  // band likewise.
  class Candidates {
   public:
    Candidates(const AddressRange& range, base::Random& random);
    std::optional<std::string> Next();  // nothing when every address has been named once

   private:
    void Enter(Number first, Number last);
    const AddressRange& range_;
    base::Random& random_;
    Number first_ = 0, last_ = 0, start_ = 0, at_ = 0;
    bool upper_ = true, seen_ = false, over_ = false;
  };

 private:
  std::string Text(Number number) const;

  bool ipv4_ = true;
  std::string cidr_;
  Number base_ = 0, first_ = 1, last_ = 0, band_ = 0;
};

}  // namespace keelson::controlplane
