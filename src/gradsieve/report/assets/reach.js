// How far back the gradient reaches: slow Q with its safe range, and the gradient over lag.
function qOverTime(chosen, colours) {
  const [low, high] = chosen.run.q_range || chosen.experiment.q_range;
  const measured = ({ history, measure }) => history[measure];
  const slow = chosen.rivals.every(({ run }) => run.measure === "slow_Q");
  const axis = { type: "value", name: slow ? "slow Q" : "Q", scale: true, nameGap: 34 };
  const chart = overTime(measured, chosen, colours, axis, short);
  const names = chart.option.series.map((series) => series.name);
  const { epoch } = chosen.run.history;
  // Minibatches were judged by the same measure only where the policy holds slow Q.
  const judged = chosen.run.holds || chosen.run.measure === "Q";
  const [Q_min, Q_max] = ["Q_min", "Q_max"].map((name) =>
    judged ? chosen.run.history[name] : epoch.map(() => null),
  );
  const safe = `safe range ${short(low)} to ${short(high)}`;
  const shade = colourOf(colours, chosen.index);
  const band = {
    type: "line",
    stack: "band",
    stackStrategy: "all",
    symbol: "none",
    silent: true,
    lineStyle: { opacity: 0 },
    tooltip: { show: false },
    emphasis: { disabled: true },
  };
  const height = Q_min.map((value, at) =>
    value === null || Q_max[at] === null ? null : Q_max[at] - value,
  );
  chart.option.series.push(
    { ...band, name: "lowest minibatch", data: zip(epoch, Q_min) },
    {
      ...band,
      name: "spread",
      data: zip(epoch, height),
      areaStyle: { color: shade, opacity: 0.16 },
    },
    {
      type: "line",
      name: safe,
      data: [],
      silent: true,
      itemStyle: { color: colours.safe },
      markArea: {
        silent: true,
        itemStyle: { color: colours.safe },
        data: [[{ yAxis: low }, { yAxis: high }]],
      },
    },
  );
  chart.option.legend.data = [...names, { name: safe, icon: "rect" }];
  // The safe range is always in sight.
  chart.option.yAxis[0].min = ({ min }) => Math.floor(Math.min(min, low));
  chart.option.yAxis[0].max = ({ max }) => Math.ceil(Math.max(max, high));
  const Q = known(measured(chosen.run));
  const outside = Q.filter((value) => value < low || value > high).length;
  chart.summary += ` ${chosen.variant.name}: outside the safe range (${short(low)} to ${short(high)}) in ${outside} of ${Q.length} points.`;
  chart.table.columns.push("lowest minibatch", "highest minibatch");
  const spread = new Map(epoch.map((number, at) => [number, [Q_min[at], Q_max[at]]]));
  chart.table.rows = chart.table.rows.map((row) => [
    ...row,
    ...(spread.get(row[0]) || [null, null]).map(short),
  ]);
  return chart;
}

// The library's own heat map (6.1.0) paints in slices of time whatever it is told, and a picture or
// a print then catches it half done; these cells are painted at once.
function drawCell(params, api) {
  if (Number.isNaN(api.value(2))) return undefined;
  const [x, y] = api.coord([api.value(0), api.value(1)]);
  const [width, height] = api.size([1, 1]);
  return {
    type: "rect",
    // Half a pixel more, so that no gap shows between cells.
    shape: { x: x - width / 2, y: y - height / 2, width: width + 0.5, height: height + 0.5 },
    style: { fill: api.visual("color") },
  };
}

// What slow Q measures, over every lag; of an older run, the norm relative to the last step.
function kept({ slow_Q, log10_norm }) {
  if (known(slow_Q.flat()).length) return slow_Q.map((row) => row.map(minus));
  return log10_norm.map((row) =>
    row.map((value) => (value === null || row[0] === null ? null : value - row[0])),
  );
}

const minus = (value) => (value === null ? null : value === 0 ? 0 : -value);

function reach({ run, raw }, colours) {
  const { epoch, lags, log10_norm } = run.history.probe;
  const values = raw ? log10_norm : kept(run.history.probe);
  const cells = values.flatMap((row, at) =>
    row.map((value, lag) => [at, lag, value === null ? "-" : value]),
  );
  const numbers = known(values.flat());
  // At least from 2 below to the last step's own size, so that noise is not stretched to a picture.
  const [low, high] = raw
    ? [smallest(numbers), largest(numbers)]
    : [Math.min(-2, smallest(numbers)), Math.max(0, largest(numbers))];
  const what = raw
    ? "log₁₀ of the gradient’s norm"
    : "log₁₀ of the gradient that is left of the last step’s";
  const ends = values.length ? values.at(-1) : [];
  return {
    option: frame(colours, {
      trigger: "item",
      series: [
        {
          type: "custom",
          data: cells,
          renderItem: drawCell,
          encode: { x: 0, y: 1, tooltip: 2 },
          progressive: 0,
          clip: true,
        },
      ],
      grid: { top: 12, bottom: 60 },
      legend: { show: false },
      xAxis: { type: "category", data: epoch, name: "epoch", splitLine: { show: false } },
      yAxis: {
        type: "category",
        data: lags,
        name: "steps back",
        nameGap: 36,
        splitLine: { show: false },
        axisLabel: { interval: Math.ceil(lags.length / 10) - 1 },
      },
      visualMap: {
        type: "continuous",
        dimension: 2,
        min: numbers.length ? low : 0,
        max: high > low ? high : low + 1,
        precision: 1,
        formatter: (value) => short(Number(value.toFixed(1))),
        orient: "horizontal",
        left: "center",
        bottom: 0,
        itemHeight: 180,
        itemWidth: 14,
        calculable: true,
        textStyle: { color: colours.ink },
        inRange: { color: CIVIDIS },
        outOfRange: { color: colours.empty },
      },
      tooltip: {
        formatter: (point) =>
          `epoch ${epoch[point.value[0]]}, ${lags[point.value[1]]} steps back<br>${what}: <b>${point.value[2] === "-" ? "zero" : short(point.value[2])}</b>`,
      },
    }),
    summary: numbers.length
      ? `${what[0].toUpperCase()}${what.slice(1)}: from ${short(low)} to ${short(high)}. At the end ${short(ends[0])} at the last step and ${short(ends.at(-1))} at ${lags.at(-1)} steps back.`
      : "No epoch of this run was probed.",
    table: {
      columns: ["epoch", ...lags.map((lag) => `${lag} back`)],
      rows: values.map((row, at) => [epoch[at], ...row.map(short)]),
    },
  };
}
