-- Pipelines requests for a list of files, and shows what it sends and how many responses arrived.

init = function(args)
  local parts = {}
  local depth = tonumber(args[1]) or 1
  local names = { "/a.css", "/b.js" }
  for i = 1, depth do
    parts[i] = wrk.format("GET", names[(i - 1) % table.getn(names) + 1] .. "?v=" .. i)
  end
  req = table.concat(parts)
  io.write("[debug] sends ", depth, " in ", string.len(req), " bytes\n")
  responses = 0
end

request = function()
  return req
end

response = function(status, headers, body)
  responses = responses + 1
  if responses == 1 then
    io.write("[debug] ", status, " ", headers["Content-Length"] or "?", " ", body, "\n")
  end
end
