// What the sieve foresaw and what it did.
function prediction({ run, predictionLog }, colours) {
  const { epoch, predicted, measured } = run.history.probe;
  const points = epoch
    .map((number, at) => [predicted[at], measured[at], number])
    .filter(([one, other]) => one !== null && other !== null);
  const sizes = points
    .flatMap(([one, other]) => [Math.abs(one), Math.abs(other)])
    .filter((size) => size > 0);
  // asinh is linear near zero and logarithmic far from it, for either sign.
  const unit = sizes.length ? median(sizes) / 10 : 1;
  const there = predictionLog ? (value) => Math.asinh(value / unit) : (value) => value;
  const back = predictionLog ? (value) => unit * Math.sinh(value) : (value) => value;
  const reachOf = sizes.length ? there(largest(sizes)) * 1.05 : 1;
  const axis = {
    type: "value",
    min: -reachOf,
    max: reachOf,
    axisLabel: {
      formatter: (value) => short(Number(back(value).toPrecision(2))),
      showMinLabel: false,
      showMaxLabel: false,
    },
  };
  const right = points.filter(([one, other]) => one > 0 === other > 0).length;
  return {
    option: frame(colours, {
      trigger: "item",
      legend: { show: false },
      grid: { top: 16 },
      xAxis: { ...axis, name: "predicted" },
      yAxis: { ...axis, name: "measured", nameGap: 48 },
      series: [
        {
          type: "scatter",
          symbolSize: 9,
          itemStyle: { opacity: 0.75 },
          data: points.map(([one, other, number]) => [there(one), there(other), number]),
          markLine: {
            silent: true,
            symbol: "none",
            label: { show: false },
            lineStyle: { color: colours.quiet, type: "dashed" },
            data: [[{ coord: [-reachOf, -reachOf] }, { coord: [reachOf, reachOf] }]],
          },
        },
      ],
      tooltip: {
        formatter: (point) =>
          `epoch ${point.value[2]}<br>predicted <b>${short(back(point.value[0]))}</b><br>measured <b>${short(back(point.value[1]))}</b>`,
      },
    }),
    few: points.length < 2,
    summary: points.length
      ? `The sign was right in ${right} of ${points.length} measured updates (${percent(right / points.length)}).`
      : "No update of this run was measured.",
    table: {
      columns: ["epoch", "predicted", "measured"],
      rows: points.map(([one, other, number]) => [number, short(one), short(other)]),
    },
  };
}

function updates({ run }, colours) {
  const { epoch, reasons, stalls, nonfinite, kept } = run.history;
  const sum = (counts) => known(counts).reduce((total, one) => total + one, 0);
  const names = Object.keys(reasons).sort((one, other) => sum(reasons[other]) - sum(reasons[one]));
  const totals = epoch.map((_, at) => sum(names.map((name) => reasons[name][at])));
  const top = Math.max(1, largest(totals.length ? totals : [1]));
  const marks = (name, counts, symbol, color, height) => ({
    name,
    type: "scatter",
    symbol,
    symbolSize: 13,
    itemStyle: { color, borderColor: colours.card, borderWidth: 1 },
    data: counts.map((count, at) => [at, height, count]).filter(([, , count]) => count > 0),
    tooltip: { valueFormatter: undefined },
    encode: { x: 0, y: 1, tooltip: 2 },
    z: 5,
  });
  const cross = "path://M0,2 L2,0 L5,3 L8,0 L10,2 L7,5 L10,8 L8,10 L5,7 L2,10 L0,8 L3,5 Z";
  return {
    option: frame(colours, {
      decal: true,
      xAxis: { type: "category", data: epoch, name: "epoch" },
      yAxis: {
        type: "value",
        name: "updates",
        nameGap: 40,
        minInterval: 1,
        max: Math.ceil(top * 1.15),
        axisLabel: { showMaxLabel: false },
      },
      series: [
        ...names.map((name, index) => ({
          name,
          type: "bar",
          stack: "updates",
          barCategoryGap: "8%",
          data: reasons[name],
          // The commonest reason is most of the picture: patterns only for the others.
          itemStyle: {
            color: colourOf(colours, index),
            ...(index === 0 ? { decal: { symbol: "none" } } : {}),
          },
        })),
        marks("stalls", stalls, "triangle", colours.ink, top * 1.08),
        marks("not finite", nonfinite, cross, colours.series[7], top * 1.08),
      ],
    }),
    summary: names.length
      ? `The sieve ${run.done}. ${sum(stalls)} stalls, ${sum(nonfinite)} minibatches not finite.`
      : "No updates yet.",
    table: {
      columns: ["epoch", ...names, "kept", "stalls", "not finite"],
      rows: epoch.map((number, at) => [
        number,
        ...names.map((name) => reasons[name][at]),
        percent(kept[at]),
        short(stalls[at]),
        short(nonfinite[at]),
      ]),
    },
  };
}
