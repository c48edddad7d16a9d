-- Prints the result as JSON, below the usual report.
-- The JSON is byte for byte what wrk-cmm's script prints; to extract it, start at the first line that begins with {.
--
--   onrush -s json.lua http://127.0.0.1:8080/ | sed -n '/^{/,$p'

function done(summary, latency)
  local seconds = summary.duration / 1e6
  local rows = {}
  for i, p in ipairs({ 50, 75, 90, 99, 99.999 }) do
    rows[i] = string.format(
      '\t\t{\n\t\t\t"percentile": %g,\n\t\t\t"latency_in_microseconds": %d\n\t\t}',
      p,
      latency:percentile(p) or 0 -- without a response
    )
  end
  print("\nJSON Output\n-----------\n")
  print("{")
  print(string.format('\t"requests": %d,', summary.requests))
  print(string.format('\t"duration_in_microseconds": %0.2f,', summary.duration))
  print(string.format('\t"bytes": %d,', summary.bytes))
  print(string.format('\t"requests_per_sec": %0.2f,', summary.requests / seconds))
  print(string.format('\t"bytes_transfer_per_sec": %0.2f,', summary.bytes / seconds))
  print('\t"latency_distribution": [')
  print(table.concat(rows, ",\n"))
  print("\t]")
  print("}")
end
