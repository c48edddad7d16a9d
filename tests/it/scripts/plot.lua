-- Collects a number for every response and fetches the long lists of all threads at the end.

local moments = require("moments")
local threads = {}

function setup(thread)
  thread:set("id", table.getn(threads) + 1)
  table.insert(threads, thread)
end

function init(args)
  samples = {}
  labels = {}
end

function response(status, headers, body)
  local n = #samples + 1
  samples[n] = string.len(body) + n / 1e6
  labels[n] = "sample " .. n
end

done = function(summary, latency, requests)
  local file = io.open("plot.csv", "w")
  file:write("thread,samples,mean,largest,last\n")
  for i, thread in ipairs(threads) do
    local list = thread:get("samples")
    local names = thread:get("labels")
    local count = table.getn(list)
    file:write(string.format("%d,%d,%.1f,%.1f,%s\n", thread:get("id"), count, moments.mean(list), moments.largest(list), names[count]))
  end
  for p = 10, 90, 10 do
    file:write(string.format("p%d,%g\n", p, latency:percentile(p)))
  end
  file:close()
end
