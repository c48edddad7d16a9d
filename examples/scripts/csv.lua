-- Appends the result as a line to the CSV file named by the first argument after the URL; without one, prints the line.
-- Arguments are passed to init, which runs in each thread; done runs outside the threads and reads them from the first.
--
--   onrush -s csv.lua http://127.0.0.1:8080/ results.csv

local first

function setup(thread)
  first = first or thread
end

function init(args)
  url, file = args[0], args[1]
end

local COLUMNS = { "url", "requests", "seconds", "bytes", "errors", "mean_us", "p50_us", "p99_us", "max_us" }

function done(summary, latency)
  local errors = 0
  for _, count in pairs(summary.errors) do
    errors = errors + count
  end
  -- Without a response there is no latency, and its cells are empty.
  local function cell(format, us)
    return us and string.format(format, us) or ""
  end
  local row = {
    first:get("url"),
    string.format("%d", summary.requests),
    string.format("%.3f", summary.duration / 1e6),
    string.format("%d", summary.bytes),
    string.format("%d", errors),
    cell("%.1f", latency.mean),
    cell("%d", latency:percentile(50)),
    cell("%d", latency:percentile(99)),
    cell("%d", latency.max),
  }
  local name = first:get("file")
  local out = name and assert(io.open(name, "a")) or io.stdout
  -- A new file begins with the names of the columns.
  if not name or out:seek("end") == 0 then
    out:write(table.concat(COLUMNS, ","), "\n")
  end
  out:write(table.concat(row, ","), "\n")
  if name then
    out:close()
  end
end
