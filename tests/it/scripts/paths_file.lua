-- Requests the paths of a file in the working directory in turn. The index begins at zero and the list at one, so every
-- round begins with the path of the URL.

local paths = {}
counter = 0

local file = io.open("paths.txt", "r")
if not file then
  io.stderr:write("there is no paths.txt\n")
  os.exit(1)
end
for line in file:lines() do
  if line ~= "" then
    paths[table.getn(paths) + 1] = line
  end
end
file:close()

request = function()
  path = paths[counter]
  counter = counter + 1
  if counter > table.getn(paths) then
    counter = 0
  end
  return wrk.format(nil, path)
end
