-- Builds every request from scratch: a path and a header that have never been sent before. `make bench` measures with
-- it what wrk.format costs.

local number = 0

function request()
    number = number + 1
    wrk.headers["X-Number"] = number
    return wrk.format(nil, "/item/" .. number)
end
