-- Reads the status, a header and the body of every response; the requests are built without Lua. `make bench` measures
-- with it what it costs to pass them to Lua.

local strange, bytes = 0, 0

function response(status, headers, body)
    if status ~= 200 or headers["Content-Type"] ~= "text/plain" then
        strange = strange + 1
    end
    bytes = bytes + #body
end
