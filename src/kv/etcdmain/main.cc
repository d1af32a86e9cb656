// The store in etcd's place as a separate program, for tests and benchmarks.
#include "kv/etcdmain/etcdmain.h"

int main(int argc, char** argv) { return keelson::kv::etcdmain::Main({argv + 1, argv + argc}); }
