-- Functions that call themselves endlessly, each through another library function.

local buffer = require("string.buffer").new()

-- An object with `call` as the metamethod of this name.
local function object(name, call)
  local meta = {}
  meta[name] = function(...) return call(...) end
  return setmetatable({}, meta)
end

local function preloaded()
  local count = 0
  local function again()
    count = count + 1
    return require("onrush.recursion" .. count)
  end
  setmetatable(package.preload, { __index = function() return again end })
  return again()
end

local function loaded()
  local count, loaders = 0, package.loaders
  local function again()
    count = count + 1
    require("onrush.recursion" .. count)
  end
  package.loaders = { again }
  local is_well, problem = pcall(again)
  package.loaders = loaders
  return is_well or error(problem, 0)
end

local function from_file()
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write("return (again())")
  file:close()
  function again()
    return (dofile(path))
  end
  local is_well, problem = pcall(again)
  os.remove(path)
  return is_well or error(problem, 0)
end

local function through_print()
  local usual = tostring
  function tostring()
    print(1)
    return ""
  end
  local is_well, problem = pcall(tostring)
  tostring = usual
  return is_well or error(problem, 0)
end

-- Deep inside a parser, once per level.
local function through_reader(text)
  local function again()
    local count = 0
    return assert(load(function()
      count = count + 1
      return count == 1 and text or again()
    end))
  end
  return again()
end

recursions = {
  { "plain", function() local function f() return 1 + f() end return f() end },
  { "pcall", function() local function f() assert(pcall(f)) end return f() end },
  { "gsub", function() local function f() return (string.gsub("a", "a", f)) end return f() end },
  { "gsub, last", function() local function f() return string.gsub("a", "a", f) end return f() end },
  { "gsub, a method", function() local function f() return (("a"):gsub("a", f)) end return f() end },
  { "gsub, itself", function() local s, f = string.gsub function f() return s("a", "", f) end return f() end },
  { "gsub, a table", function()
    local t t = object("__index", function() return (string.gsub("a", "a", t)) end)
    return t.a
  end },
  { "sort", function() local function f() return table.sort({ 1, 2 }, f) end return f() end },
  { "foreach", function() local function f() return (table.foreach({ 1 }, f)) end return f() end },
  { "tostring", function() local o o = object("__tostring", function() return (tostring(o)) end) return tostring(o) end },
  { "format", function()
    local o o = object("__tostring", function() return ("%s"):format(o) end)
    return tostring(o)
  end },
  { "print", through_print },
  { "put", function() local o o = object("__tostring", function() buffer:put(o) return "" end) return tostring(o) end },
  { "putf", function()
    local o o = object("__tostring", function() buffer:putf("%s", o) return "" end)
    return tostring(o)
  end },
  { "index", function() local o o = object("__index", function() return (o.a) end) return o.a end },
  { "concat", function() local o o = object("__concat", function() return (o .. o) end) return o .. o end },
  { "less", function() local o o = object("__lt", function() return (o < o) end) return o < o end },
  { "call", function() local o o = object("__call", function() return (o()) end) return o() end },
  { "time", function() local t t = object("__index", function() return (os.time(t)) end) return os.time(t) end },
  { "load", function() local function f() return assert(load(f)) end return f() end },
  { "load, in brackets", function() return through_reader("return " .. ("("):rep(150)) end },
  { "load, in tables", function() return through_reader("return " .. ("{"):rep(150)) end },
  { "load, in functions", function() return through_reader("return " .. ("function() return "):rep(90)) end },
  { "loadstring", function() local function f() return assert(loadstring(f)) end return f() end },
  { "require, preloaded", preloaded },
  { "require", loaded },
  { "dofile", from_file },
  { "wrap", function() local function f() return (coroutine.wrap(f)()) end return f() end },
  { "resume", function()
    local function f() return (assert(coroutine.resume(coroutine.create(f)))) end
    return f()
  end },
  { "wrap and gsub", function()
    local function f() return (coroutine.wrap(function() return (string.gsub("a", "a", f)) end)()) end
    return f()
  end },
  { "wrap behind gsub", function()
    local depth = 0
    local function f()
      depth = depth + 1
      return depth % 500 == 0 and coroutine.wrap(f)() or (string.gsub("a", "a", f))
    end
    return f()
  end },
  { "wrap behind sort", function()
    local depth = 0
    local function f()
      depth = depth + 1
      return depth % 3000 == 0 and coroutine.wrap(f)() or (table.sort({ 1, 2 }, f))
    end
    return f()
  end },
}
