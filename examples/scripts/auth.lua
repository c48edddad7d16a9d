-- Logs in first, then sends the token from the response: from a JSON body here, see below for a header.
-- Until the token arrives, every request is a login; from then on the thread repeats one request that was built once.
--
--   onrush -s auth.lua --warmup 1s http://127.0.0.1:8080/private
--
-- A login counts like any other request; --warmup excludes it from the figures. A failed login ends the run with exit
-- code 1.
--
-- A login by a form instead of JSON:
--
--   login = wrk.format("POST", "/login", { ["Content-Type"] = "application/x-www-form-urlencoded" }, "user=ada&pin=1")
--
-- A token from a response header, sent in a separate request header. Drop the parameter `body` then, because it keeps
-- every body:
--
--   local found = headers["X-Token"]
--   wrk.headers["X-Api-Key"] = found

local login, private

function init()
  login = wrk.format("POST", "/login", { ["Content-Type"] = "application/json" }, '{"user":"ada"}')
end

function request()
  return private or login
end

-- Responses do not name their request. Without a token, every response belongs to a login.
function response(status, headers, body)
  if private then
    return
  end
  local found = status == 200 and body:match('"token"%s*:%s*"([^"]+)"')
  if not found then
    error("the login failed with status " .. status .. (status == 200 and ", no token in the body" or ""), 0)
  end
  wrk.headers.Authorization = "Bearer " .. found
  private = wrk.format("GET")
end
