-- Sets at the top level what is sent; no Lua runs during the run. `make bench` measures with it what that costs:
-- nothing, or almost.

wrk.method = "POST"
wrk.body = "name=x&size=3"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
