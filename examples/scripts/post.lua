-- Sends a form with every request.
-- What is decided at the top is decided once: no Lua runs while the requests are under way.

wrk.method = "POST"
wrk.body = "name=x&size=3"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
