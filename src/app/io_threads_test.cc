#include "app/io_threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace keelson::app {
namespace {

TEST(IOThreads, NumberIsTheFlag) { EXPECT_EQ(IOThreads(7), 7u); }

TEST(IOThreads, DefaultToTheCoresThatMayBeUsed) {
  EXPECT_GE(IOThreads(0), 1u);
  // Affinity is a thread's own.
  std::thread([] {
    cpu_set_t cores;
    ASSERT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
    for (int core = 0, kept = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &cores) && kept++ > 0) CPU_CLR(core, &cores);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof(cores), &cores), 0);
    EXPECT_EQ(IOThreads(0), 1u);
  }).join();
}

}  // namespace
}  // namespace keelson::app
