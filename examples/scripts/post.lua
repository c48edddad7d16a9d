-- Sends a form with POST.
-- The values set here define a single request that every connection repeats, as fast as without a script.
--
--   onrush -s post.lua http://127.0.0.1:8080/sink

wrk.method = "POST"
wrk.body = "name=Ada&city=London"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
