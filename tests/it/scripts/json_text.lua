-- A library that writes values as JSON.

local json = {}

local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(c) return string.format("\\u%04x", c:byte()) end) .. '"'
end

function json.encode(value)
  if type(value) == "table" then
    local names, fields = {}, {}
    for name in pairs(value) do
      names[#names + 1] = name
    end
    table.sort(names)
    for i, name in ipairs(names) do
      fields[i] = quoted(name) .. ":" .. json.encode(value[name])
    end
    return "{" .. table.concat(fields, ",") .. "}"
  end
  return type(value) == "string" and quoted(value) or tostring(value)
end

return json
