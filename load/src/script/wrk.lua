-- The table `wrk` for scripts, and the functions that call a script's functions. Runs once per state, before the script.
--
-- Arguments: the host functions, the command line, and the number of the thread (nil in the main state). Returns the
-- functions for the host to call. Errors are raised here and not in the host, so that each message is a string that
-- starts with the file and line of the script.
local native, given, id = ...

-- Scripts may replace any global; the table must still work afterwards.
local error, find, format, getmetatable, gsub = error, string.find, string.format, getmetatable, string.gsub
local newproxy, next, pcall = newproxy, next, pcall
local select, setmetatable, tonumber, tostring, type, xpcall = select, setmetatable, tonumber, tostring, type, xpcall
local concat, getinfo, gmatch, ipairs, traceback = table.concat, debug.getinfo, string.gmatch, ipairs, debug.traceback

local wrk = {
  scheme = given.scheme,
  host = given.host,
  port = given.port,
  method = given.method,
  path = given.path,
  headers = given.headers,
  body = given.body,
  time_us = native.time_us,
}
_G.wrk = wrk
-- Scripts may call `local wrk = require("wrk")`, even a script named wrk.lua.
package.loaded.wrk = wrk

-- C modules: modules that would crash are refused, see `module.rs`.

local loadlib, match, searchpath = package.loadlib, string.match, package.searchpath

function package.loadlib(path, ...)
  local problem = native.module_problem(tostring(path))
  if problem then
    return nil, problem, "open"
  end
  return loadlib(path, ...)
end

-- The second loader loads Lua modules. A script must not load itself as a required module of the same name.
local load_lua = package.loaders[2]
package.loaders[2] = function(name)
  local found = searchpath(name, package.path)
  if not found or not native.is_script(found) then
    return load_lua(name)
  end
  local templates, usual = {}, package.path
  for template in gmatch(usual, "[^;]+") do
    local path = searchpath(name, template)
    if not path or not native.is_script(path) then
      templates[#templates + 1] = template
    end
  end
  package.path = concat(templates, ";")
  local is_well, loaded = pcall(load_lua, name)
  package.path = usual
  if not is_well then
    error(loaded, 0)
  end
  return loaded
end

-- The third and fourth loaders load C modules: by the whole name, and by the first part of the name.
for i, part in next, { [3] = "^.*$", [4] = "^[^.]*" } do
  local load = package.loaders[i]
  package.loaders[i] = function(name)
    local path = searchpath(match(name, part), package.cpath)
    local problem = path and native.module_problem(path)
    if problem then
      error(problem, 0)
    end
    return load(name)
  end
end

-- The host ends the run as soon as its current call returns, even if the script catches the error.
local function exit(code)
  native.exit(code)
  error(format("the script called os.exit(%d)", code), 0)
end

function os.exit(code)
  exit(code == false and 1 or tonumber(code) or 0)
end

-- Commands: see `shell.rs`.

local function command_of(value, name)
  if type(value) ~= "string" and type(value) ~= "number" then
    error(format("bad argument #1 to '%s' (string expected, got %s)", name, value == nil and "no value" or type(value)), 3)
  end
  return tostring(value)
end

function os.execute(command)
  -- Without a command: 1, because a shell exists.
  return command == nil and 1 or native.execute(command_of(command, "execute"))
end

local open, usual_output = io.open, io.output
local file_type = getmetatable(io.stdout)
local close = file_type.__index.close
-- Descriptors of the files connected to a command.
local pipes = setmetatable({}, { __mode = "k" })

function io.popen(command, mode)
  command = command_of(command, "popen")
  local is_read = mode == nil or find(mode, "^r") ~= nil
  if not is_read and not find(mode, "^w") then
    return nil, command .. ": Invalid argument", 22
  end
  local file, problem, number = open("/dev/null", is_read and "r" or "w")
  if not file then
    return nil, problem, number
  end
  local descriptor = native.fileno(file)
  problem, number = native.popen(descriptor, command, is_read)
  if problem then
    close(file)
    return nil, command .. ": " .. problem, number
  end
  pipes[file] = descriptor
  return file
end

function file_type.__index.close(...)
  local descriptor = pipes[(...)]
  if not descriptor then
    return close(...)
  end
  pipes[(...)] = nil
  local is_closed = close(...)
  native.wait(descriptor)
  return is_closed
end

function io.close(...)
  if select("#", ...) == 0 then
    return file_type.__index.close(usual_output())
  end
  return file_type.__index.close(...)
end

function wrk.log(...)
  local words = {}
  for i = 1, select("#", ...) do
    words[i] = tostring((select(i, ...)))
  end
  native.say(concat(words, "\t"))
end

-- Recursion through C: see `stack.rs`. Tail calls here count as calls by the script itself, so that errors name the
-- script's line.

local is_stack_low = native.is_stack_low

function string.gsub(...)
  if is_stack_low() then
    error("stack overflow", 2)
  end
  return gsub(...)
end

-- Number of coroutines and parsers waiting for the running one. Only endless recursion exceeds the limit, and each
-- level may add its position to the message.
local nested, nested_max = 0, 1000

local function enter()
  local outer = nested
  if outer > 0 and (outer >= nested_max or is_stack_low()) then
    error("stack overflow", 3)
  end
  nested = outer + 1
  return outer
end

local function leave(outer, ...)
  nested = outer
  return ...
end

local function leave_or_raise(outer, is_well, ...)
  nested = outer
  if is_well then
    return ...
  end
  error((...), 2)
end

local create, resume, wrap = coroutine.create, coroutine.resume, coroutine.wrap

function coroutine.resume(...)
  return leave(enter(), resume(...))
end

function coroutine.wrap(body)
  if type(body) ~= "function" then
    return wrap(body)
  end
  local thread = create(body)
  return function(...)
    return leave_or_raise(enter(), resume(thread, ...))
  end
end

for _, name in ipairs({ "load", "loadstring" }) do
  local load = _G[name]
  _G[name] = function(...)
    if type((...)) ~= "function" then
      return load(...)
    end
    return leave(enter(), load(...))
  end
end

-- Addresses: empty userdata; `places` holds their contents.

local places = setmetatable({}, { __mode = "k" })
local mold = newproxy(true)

getmetatable(mold).__tostring = function(address)
  return (gsub(places[address], "^%[(.*)%]", "%1"))
end

local function address_of(place)
  local address = newproxy(mold)
  places[address] = place
  return address
end

local function place_of(value, problem)
  local place = value ~= nil and places[value]
  return place or error(format(problem, type(value)), 3)
end

local function addresses_of(list)
  local addresses = {}
  for i, place in ipairs(list) do
    addresses[i] = address_of(place)
  end
  return addresses
end

function wrk.lookup(host, service)
  if type(host) ~= "string" then
    error(format("bad argument #1 to 'lookup' (string expected, got %s)", type(host)), 2)
  end
  if type(service) ~= "string" and type(service) ~= "number" then
    error(format("bad argument #2 to 'lookup' (string or number expected, got %s)", type(service)), 2)
  end
  local places, problem = native.lookup(host, tostring(service))
  if not places then
    -- As in wrk, this ends the program.
    native.tell(problem)
    exit(1)
  end
  return addresses_of(places)
end

function wrk.connect(address)
  return native.connect(place_of(address, "bad argument #1 to 'connect' (wrk.addr expected, got %s)"))
end

local function usual_resolve(host, service)
  local addresses = {}
  for _, address in ipairs(wrk.lookup(host, service)) do
    if wrk.connect(address) then
      addresses[#addresses + 1] = address
    end
  end
  wrk.addrs = addresses
end
wrk.resolve = usual_resolve

-- Threads: userdata with these members.

local function thread_of(number)
  local members = { id = number }

  function members:get(name)
    local value, problem = native.get(number, tostring(name))
    if problem then
      error(problem, 2)
    end
    return value
  end

  function members:set(name, value)
    local problem = native.set(number, tostring(name), value)
    if problem then
      error(problem, 2)
    end
  end

  function members:stop()
    local problem = native.stop(number)
    if problem then
      error(problem, 2)
    end
  end

  local thread = newproxy(true)
  local meta = getmetatable(thread)

  function meta.__index(_, key)
    if key == "addr" then
      local place = native.place(number) or given.addresses[1]
      return place and address_of(place)
    end
    local member = members[key]
    if member == nil then
      return key
    end
    return member
  end

  function meta.__newindex(_, key, value)
    if key ~= "addr" then
      error(format("cannot set '%s' on thread", type(value)), 2)
    end
    if given.is_proxied then
      error("cannot set 'addr' on thread: with --http-proxy all connections go to the proxy; leave one of the two out", 2)
    end
    local problem = native.move(number, place_of(value, "bad value for 'addr' (wrk.addr expected, got %s)"))
    if problem then
      error(problem, 2)
    end
  end

  return thread
end

-- Requests.

local text = require("string.buffer").new()
-- For a proxy: the scheme and authority before the path, and the login.
local origin, login = given.origin, given.login

local function refuse(what, value)
  error(format("bad %s for wrk.format (string or number expected, got %s)", what, type(value)), 3)
end

local function is_plain(value)
  local kind = type(value)
  return kind == "string" or kind == "number"
end

function wrk.format(method, path, headers, body)
  method, path, headers, body = method or wrk.method, path or wrk.path, headers or wrk.headers, body or wrk.body
  if not is_plain(method) then refuse("method", method) end
  if not is_plain(path) then refuse("path", path) end
  if type(headers) ~= "table" then
    error(format("bad headers for wrk.format (table expected, got %s)", type(headers)), 2)
  end
  if headers.Host == nil then
    headers.Host = wrk.headers.Host
  end
  if body then
    if not is_plain(body) then refuse("body", body) end
    body = tostring(body)
    headers["Content-Length"] = #body
  else
    headers["Content-Length"] = nil
  end
  if origin and find(path, "^/") then
    path = origin .. path
  end
  text:reset():put(method, " ", path, " HTTP/1.1\r\n")
  for name, value in next, headers do
    local kind = type(value)
    if kind == "table" or kind == "function" then
      refuse("header '" .. tostring(name) .. "'", value)
    end
    text:put(tostring(name), ": ", tostring(value), "\r\n")
  end
  if login and headers["Proxy-Authorization"] == nil then
    text:put("Proxy-Authorization: ", login, "\r\n")
  end
  text:put("\r\n")
  if body then
    text:put(body)
  end
  return text:get()
end

-- The phases.

local is_in_init = false

function wrk.init(args)
  -- Scripts written for older versions call this function from their own `init`.
  if is_in_init then
    return
  end
  is_in_init = true
  if wrk.headers.Host == nil then
    local host = find(wrk.host, ":", 1, true) and "[" .. wrk.host .. "]" or wrk.host
    wrk.headers.Host = wrk.port and host .. ":" .. wrk.port or host
  end
  if type(init) == "function" then
    init(args)
  end
  is_in_init = false
  local request = wrk.format()
  function wrk.request()
    return request
  end
end

function wrk.setup(thread)
  if type(setup) == "function" then
    setup(thread)
  end
end

-- Statistics: userdata.

local function statistics(view)
  if not view then
    return nil
  end
  local members = { min = view.min, max = view.max, mean = view.mean, stdev = view.stdev }
  local may_miss = { raw = statistics(view.raw) or false, scheduled = statistics(view.scheduled) or false }
  -- Native scripts see nil for statistics without values.
  for _, name in next, { "min", "max", "mean", "stdev" } do
    may_miss[name] = members[name] or false
  end

  function members:percentile(p)
    local percent = tonumber(p)
    if not percent then
      error(format("bad argument #1 to 'percentile' (number expected, got %s)", type(p)), 2)
    end
    return view.percentile(percent)
  end

  local object = newproxy(true)
  local meta = getmetatable(object)

  function meta.__index(_, key)
    if members[key] ~= nil then
      return members[key]
    elseif may_miss[key] ~= nil then
      return may_miss[key] or nil
    elseif type(key) ~= "number" then
      return key
    elseif given.is_wrk2 then
      return view.percentile(100 * key / view.count)
    end
    return tostring(key)
  end

  function meta.__len()
    return given.is_wrk2 and view.count or view.distinct
  end

  if not given.is_wrk2 then
    function meta.__call(_, i)
      return view.at(tonumber(i) or 0)
    end
  end
  return object
end

-- Functions for the host to call.

-- Converts an error that is not a string to text.
local function words_for(problem)
  local is_well, words = pcall(tostring, problem)
  if is_well and type(words) == "string" then
    return words
  end
  return format("a %s value whose __tostring fails", type(problem))
end

-- After a stack overflow little of Lua's stack is left, so these functions are small and tail-called where possible.

local function with_trace(words)
  -- `traceback` would cut the text off at a NUL byte.
  return words .. traceback("", 2)
end

-- Adds the position to an error message without one.
local function with_place(words)
  -- Level 1 is this function.
  local level = 2
  local about = getinfo(level, "Sl")
  while about and (about.currentline < 1 or about.source == "=wrk") do
    level = level + 1
    about = getinfo(level, "Sl")
  end
  if not about then
    return with_trace(given.script .. ": " .. words)
  end
  return with_trace(format("%s:%d: %s", about.short_src, about.currentline, words))
end

local function handler(problem)
  if type(problem) ~= "string" then
    return with_place("error: " .. words_for(problem))
  elseif problem == "stack overflow" or find(problem, "^%[builtin:.*stack overflow$") then
    return with_place("stack overflow")
  elseif find(problem, "^wrk:%d+:") then
    -- If this file fails on a value that the script left in `wrk`, no line of the script is to blame.
    problem = given.script .. gsub(problem, "^wrk:%d+", "")
  end
  return with_trace(problem)
end

local calls = {}

function calls.start()
  wrk.addrs = addresses_of(given.addresses)
  if wrk.resolve ~= usual_resolve then
    wrk.resolve(wrk.host, wrk.port or wrk.scheme)
  end
end

function calls.setup(number)
  local thread = thread_of(number)
  if wrk.resolve ~= usual_resolve and wrk.addrs[1] then
    thread.addr = wrk.addrs[1]
  end
  wrk.setup(thread)
end

function calls.init(args)
  wrk.thread = thread_of(id)
  wrk.init(args)
end

function calls.done(summary, latency, requests)
  done(summary, statistics(latency), statistics(requests))
end

for name, call in next, calls do
  calls[name] = function(...)
    return xpcall(call, handler, ...)
  end
end
calls.handler = handler

function calls.run(file)
  return xpcall(file, handler)
end

-- Number of named parameters of a global function, and true if it is variadic.
function calls.parameters(name)
  local about = getinfo(_G[name], "u")
  return about.nparams, about.isvararg
end

return calls
