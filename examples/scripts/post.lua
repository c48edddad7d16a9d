-- Sends a form with POST.
-- What is set here at the top decides the one request that every connection repeats, at the speed of no script at all.
--
--   onrush -s post.lua http://127.0.0.1:8080/sink

wrk.method = "POST"
wrk.body = "name=Ada&city=London"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
