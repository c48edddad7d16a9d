-- Every request is the same string, built once. `make bench` measures with it what a call of Lua costs, no matter what
-- Lua does.

local text

function init()
    text = wrk.format()
end

function request()
    return text
end
