-- Sends a body in every request: as many bytes as the number at the end of the path says. No Lua runs meanwhile.
-- `make bench` measures uploads with it.

wrk.method = "POST"
wrk.body = string.rep("x", tonumber(wrk.path:match("%d+$")))
