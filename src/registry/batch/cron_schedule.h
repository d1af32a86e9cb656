// Schedules of cron jobs: five fields or a descriptor (@hourly, @every 1h), with the errors of robfig/cron's standard
// parser.
#pragma once

#include <string>
#include <string_view>

namespace keelson::registry::batch {

// The error in a cron schedule; "" if it is valid.
std::string CronScheduleProblem(std::string_view schedule);

}  // namespace keelson::registry::batch
