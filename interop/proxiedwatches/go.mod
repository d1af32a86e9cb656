module keelson/interop/proxiedwatches

go 1.26.0
