// Comma-separated values as Go's encoding/csv reads them by default, with any number of fields a record.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"

namespace keelson::auth {

class CSVReader {
 public:
  explicit CSVReader(std::string_view text) : rest_(text) {}  // must outlive this
  // The next record, nothing at the end; blank lines are none. An error as Go words it: `parse error on line 1, column
  // 4: bare " in non-quoted-field`. REQUIRES: not after an error.
  Outcome<std::optional<std::vector<std::string>>, std::string> Next();

 private:
  std::string ReadLine();  // with its newline; "" at the end
  std::string Problem(std::size_t column, std::string_view what) const;

  std::string_view rest_;
  std::size_t line_ = 0;         // number of the last line read
  std::size_t record_line_ = 0;  // where the record began
};

}  // namespace keelson::auth
