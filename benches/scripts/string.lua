-- Every request is the same string, put together once.
-- `make bench` measures with it what asking Lua costs, whatever Lua does.

local text

function init()
    text = wrk.format()
end

function request()
    return text
end
