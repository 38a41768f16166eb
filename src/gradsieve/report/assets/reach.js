// How far back the gradient reaches: Q with its safe range, and the norm over lag.
function qOverTime(chosen, colours) {
  const [low, high] = chosen.run.q_range || chosen.experiment.q_range;
  const chart = overTime(
    "Q",
    chosen,
    colours,
    { type: "value", name: "Q", scale: true, nameGap: 34 },
    short,
  );
  const names = chart.option.series.map((series) => series.name);
  const { epoch, Q, Q_min, Q_max } = chosen.run.history;
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
  const outside = known(Q).filter((value) => value < low || value > high).length;
  chart.summary += ` ${chosen.variant.name}: outside the safe range (${short(low)} to ${short(high)}) in ${outside} of ${known(Q).length} points.`;
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

function reach({ run, relative }, colours) {
  const { epoch, lags, log10_norm } = run.history.probe;
  const values = log10_norm.map((row) =>
    row.map((value) =>
      value === null || (relative && row[0] === null) ? null : relative ? value - row[0] : value,
    ),
  );
  const cells = values.flatMap((row, at) =>
    row.map((value, lag) => [at, lag, value === null ? "-" : value]),
  );
  const numbers = known(values.flat());
  const [low, high] = numbers.length ? [smallest(numbers), largest(numbers)] : [0, 1];
  const what = relative
    ? "log₁₀ of the norm relative to the last step"
    : "log₁₀ of the gradient’s norm";
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
      xAxis: { type: "category", data: epoch, name: "epoch", splitArea: { show: false } },
      yAxis: {
        type: "category",
        data: lags,
        name: "steps back",
        nameGap: 36,
        axisLabel: { interval: Math.ceil(lags.length / 10) - 1 },
      },
      visualMap: {
        type: "continuous",
        dimension: 2,
        min: low,
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
