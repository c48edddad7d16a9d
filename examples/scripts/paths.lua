-- Requests several paths, each in proportion to its weight.
-- The requests are built once and drawn at random: the same sequence in every run, unless --seed changes it.
--
--   onrush -s paths.lua http://127.0.0.1:8080/

local WEIGHTS = {
  ["/"] = 6,
  ["/bytes/1000"] = 3,
  ["/status/404"] = 1,
}

local draw = {}

function init()
  for path, weight in pairs(WEIGHTS) do
    local request = wrk.format("GET", path)
    for _ = 1, weight do
      draw[#draw + 1] = request
    end
  end
end

function request()
  return draw[math.random(#draw)]
end
