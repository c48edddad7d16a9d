-- Numbers requests and takes a column of a file in turn, as --templates does with {{seq}} and {{csv FILE COLUMN}}. `make
-- bench` compares the two.

local ids = {}
local number = 0

function init()
    for line in io.lines("target/bench/users.csv") do
        ids[#ids + 1] = line:match("^%d+")
    end
end

function request()
    number = number + 1
    return wrk.format(nil, "/item/" .. number .. "?user=" .. ids[(number - 1) % #ids + 1])
end
