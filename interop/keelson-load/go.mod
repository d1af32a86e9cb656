module keelson/interop/keelson-load

go 1.26.0
