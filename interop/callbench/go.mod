module keelson/interop/callbench

go 1.26.0

require keelson/interop/beside v0.0.0

replace keelson/interop/beside => ../beside
