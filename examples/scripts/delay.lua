-- Pauses between requests, as people do: 50 to 150 milliseconds.
-- Only the connection pauses, not the thread; the pause is not part of the latency.
--
--   onrush -c 200 -s delay.lua http://127.0.0.1:8080/

function delay()
  return math.random(50, 150)
end
