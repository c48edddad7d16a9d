-- Sixteen requests at once, built in init: wrk pipelines only if a script says so. `make bench` measures with it what
-- one of them costs.

local batch

function init()
    local requests = {}
    for number = 1, 16 do
        requests[number] = wrk.format(nil, "/item/" .. number)
    end
    batch = table.concat(requests)
end

function request()
    return batch
end
