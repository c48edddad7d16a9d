-- Decides at the top what is sent; no Lua runs while the requests are under way.
-- `make bench` measures with it what is left of that: nothing, or almost.

wrk.method = "POST"
wrk.body = "name=x&size=3"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
