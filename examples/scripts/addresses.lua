-- Gives each thread the next address of the host, in turn.
-- Addresses that accept no connection are left out.
--
--   onrush -t 2 -s addresses.lua http://localhost:8080/

local addresses
local next_one = 0

function setup(thread)
  if not addresses then
    addresses = {}
    for _, address in ipairs(wrk.lookup(wrk.host, wrk.port or wrk.scheme)) do
      if wrk.connect(address) then
        addresses[#addresses + 1] = address
      end
    end
    if #addresses == 0 then
      error("no address of " .. wrk.host .. " accepts a connection")
    end
  end
  thread.addr = addresses[next_one % #addresses + 1]
  next_one = next_one + 1
  print("thread " .. next_one .. " goes to " .. tostring(thread.addr))
end
