-- Sends three requests at once, without waiting for the responses in between.
-- They are built once, in init, because whatever request returns is sent unchanged.
--
--   onrush -s pipeline.lua http://127.0.0.1:8080/

local batch

function init()
  batch = table.concat({
    wrk.format("GET", "/bytes/100"),
    wrk.format("GET", "/bytes/200"),
    wrk.format("POST", "/sink", nil, "one=1"),
  })
end

function request()
  return batch
end
