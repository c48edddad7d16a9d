-- Writes a header once and a row per run, to standard output and to a file.

local header = { "min", "max", "mean", "stdev", "50%", "90%", "99%", "99.999%", "duration", "requests", "bytes" }

done = function(summary, latency, requests)
  local row = { latency.min, latency.max, latency.mean, latency.stdev }
  for _, p in pairs({ 50, 90, 99, 99.999 }) do
    row[#row + 1] = latency:percentile(p)
  end
  row[#row + 1] = summary.duration
  row[#row + 1] = summary.requests
  row[#row + 1] = summary.bytes
  for i, value in ipairs(row) do
    row[i] = string.format("%d", value)
  end
  local name = os.getenv("REPORT") or "report.csv"
  local exists = io.open(name, "r")
  local file = io.open(name, "a+")
  if exists then
    exists:close()
  else
    file:write(table.concat(header, ","), "\n")
  end
  file:write(table.concat(row, ","), "\n")
  file:close()
  io.write("CSV\n", table.concat(row, ","), "\n")
  local errors = 0
  for _, what in ipairs({ "connect", "read", "write", "status", "timeout" }) do
    errors = errors + summary.errors[what]
  end
  io.write(string.format("errors: %d\n", errors))
end
