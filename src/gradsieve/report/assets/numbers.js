// How numbers are written, in charts, summaries and tables alike.
const known = (values) => values.filter((value) => value !== null && value !== undefined);

function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(2).replace("-", "−");
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

function percent(value) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`;
}

// Arrays of 10^5 values overflow the stack when they are spread into Math.min.
const smallest = (values) => known(values).reduce((low, value) => Math.min(low, value), Infinity);
const largest = (values) => known(values).reduce((high, value) => Math.max(high, value), -Infinity);

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const zip = (xs, ys) => xs.map((x, index) => [x, ys[index]]);
const last = (values) => (known(values).length ? known(values).at(-1) : null);
