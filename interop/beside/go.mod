module keelson/interop/beside

go 1.26.0
