-- Logs in first, then sends the token from the response.
-- Until the token arrives, every request is a login; from then on the thread repeats one request that was built once.
--
--   onrush -s auth.lua http://127.0.0.1:8080/private

local login, private

function init()
  login = wrk.format("POST", "/login", { ["Content-Type"] = "application/json" }, '{"user":"ada"}')
end

function request()
  return private or login
end

function response(status, headers)
  local token = headers["X-Token"]
  if not private and status == 200 and token then
    wrk.headers.Authorization = "Bearer " .. token
    private = wrk.format("GET")
  end
end
