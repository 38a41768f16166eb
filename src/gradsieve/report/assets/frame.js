// What all charts share: the frame in the page's colours, axes, lines over epochs.
// A chart (the files beside this one) is a function of what is chosen. It returns what to draw, a
// sentence that says it to who cannot see it, and the table behind it, and touches no page. `few`
// says that there are not two points to draw: the page then leaves the chart out.
function frame(colours, extra) {
  const axis = {
    axisLine: { onZero: false, lineStyle: { color: colours.quiet } },
    axisLabel: { color: colours.quiet, hideOverlap: true },
    splitLine: { lineStyle: { color: colours.grid } },
    nameTextStyle: { color: colours.quiet },
    nameLocation: "middle",
    nameGap: 26,
  };
  const dress = (given) =>
    []
      .concat(given)
      .map((one) => ({ ...axis, ...one, axisLabel: { ...axis.axisLabel, ...one.axisLabel } }));
  return {
    animation: false,
    aria: { enabled: true, label: { enabled: false }, decal: { show: Boolean(extra.decal) } },
    backgroundColor: "transparent",
    textStyle: { fontFamily: "system-ui, sans-serif", color: colours.ink },
    color: colours.series,
    grid: {
      left: 12,
      right: 16,
      top: 44,
      bottom: 12,
      outerBoundsMode: "same",
      outerBoundsContain: "all",
      ...extra.grid,
    },
    legend: {
      type: "scroll",
      top: 4,
      itemWidth: 20,
      itemGap: 8,
      textStyle: { color: colours.ink },
      pageTextStyle: { color: colours.ink },
      pageIconColor: colours.ink,
      pageIconInactiveColor: colours.line,
      ...extra.legend,
    },
    tooltip: {
      trigger: extra.trigger || "axis",
      confine: true,
      backgroundColor: colours.card,
      borderColor: colours.line,
      textStyle: { color: colours.ink },
      valueFormatter: extra.format || short,
      ...extra.tooltip,
    },
    xAxis: dress(extra.xAxis),
    yAxis: dress(extra.yAxis),
    series: extra.series,
    ...(extra.visualMap ? { visualMap: extra.visualMap } : {}),
  };
}

const epochAxis = (more = {}) => ({
  type: "value",
  name: "epoch",
  min: "dataMin",
  max: "dataMax",
  minInterval: 1,
  ...more,
});
const share = {
  type: "value",
  min: 0,
  max: 1,
  axisLabel: { formatter: (value) => `${Math.round(100 * value)} %` },
};

// A dashed line that the legend names: a label beside it would lie on the runs that only guess.
function addChance(option, chance, colours) {
  if (chance === null) return;
  const name = `constant guess ${percent(chance)}`;
  const icon = "path://M0,4h5v1h-5z M8,4h5v1h-5z M16,4h5v1h-5z";
  option.legend.data = [...option.series.map((one) => one.name), { name, icon }];
  option.series.push({
    name,
    type: "line",
    data: [],
    itemStyle: { color: colours.quiet },
    markLine: {
      silent: true,
      symbol: "none",
      label: { show: false },
      lineStyle: { color: colours.quiet, type: "dashed" },
      data: [{ yAxis: chance }],
    },
  });
}

function lineSeries(name, index, colours, data, more = {}) {
  return {
    name,
    type: "line",
    data,
    symbol: markOf(SYMBOLS, index),
    symbolSize: 6,
    showSymbol: data.length < 40,
    connectNulls: false,
    itemStyle: { color: colourOf(colours, index) },
    lineStyle: { width: 2, type: markOf(DASHES, index) },
    ...more,
  };
}

// `pick` gives the column of a run that is drawn.
function overTime(pick, { rivals }, colours, axis, write) {
  const series = rivals.map(({ variant, index, run }) =>
    lineSeries(variant.name, index, colours, zip(run.history.epoch, pick(run))),
  );
  const epochs = [...new Set(rivals.flatMap(({ run }) => run.history.epoch))].sort(
    (one, other) => one - other,
  );
  const lookups = rivals.map(({ run }) => new Map(zip(run.history.epoch, pick(run))));
  return {
    option: frame(colours, { series, xAxis: epochAxis(), yAxis: axis, format: write }),
    summary:
      rivals
        .map(({ variant, run }) => `${variant.name} ended at ${write(last(pick(run)))}`)
        .join("; ") + ".",
    table: {
      columns: ["epoch", ...rivals.map(({ variant }) => variant.name)],
      rows: epochs.map((epoch) => [epoch, ...lookups.map((lookup) => write(lookup.get(epoch)))]),
    },
  };
}
