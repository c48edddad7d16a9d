-- Writes the result to a file, with a library from the script's directory, which it finds by the name of this chunk.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path
local json = require("json_text")

done = function(summary, latency, requests)
  local result = {
    requests = summary.requests,
    duration = summary.duration,
    bytes = summary.bytes,
    errors = {},
    latency = { min = latency.min, max = latency.max, mean = latency.mean, stdev = latency.stdev },
    note = 'a "quoted" word',
  }
  for what, count in pairs(summary.errors) do
    result.errors[what] = count
  end
  local file = assert(io.open("result.json", "w"))
  file:write(json.encode(result), "\n")
  file:close()
  io.write("exported\n")
end
