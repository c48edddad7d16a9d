-- A library in a script's directory: the mean and the maximum of a list.

local moments = {}

function moments.mean(list)
  local sum = 0
  for _, value in ipairs(list) do
    sum = sum + value
  end
  return sum / table.getn(list)
end

function moments.largest(list)
  return math.max(unpack(list, 1, math.min(table.getn(list), 1000)))
end

return moments
