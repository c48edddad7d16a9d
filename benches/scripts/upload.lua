-- Sends a body in every request: as many bytes as the number at the end of the path says. No Lua runs during the run.
-- `make bench` measures uploads with it.

wrk.method = "POST"
wrk.body = string.rep("x", tonumber(wrk.path:match("%d+$")))
