-- Logs in first, then sends the token from the response. If a login fails, the thread stops.
-- Until the token arrives, every request is a login; from then on the thread repeats one request that was built once.
--
--   onrush -s auth.lua http://127.0.0.1:8080/private
--
-- A login by a form instead of JSON:
--
--   login = wrk.format("POST", "/login", { ["Content-Type"] = "application/x-www-form-urlencoded" }, "user=ada&pin=1")

local login, private

function init()
  login = wrk.format("POST", "/login", { ["Content-Type"] = "application/json" }, '{"user":"ada"}')
end

function request()
  return private or login
end

-- A response does not tell which request it belongs to. Without a token it can only be one to a login.
function response(status, headers)
  if private then
    return
  end
  local token = headers["X-Token"]
  if status == 200 and token then
    wrk.headers.Authorization = "Bearer " .. token
    private = wrk.format("GET")
  else
    wrk.log("login failed: status " .. status .. (token and "" or ", no X-Token"))
    wrk.thread:stop()
  end
end
