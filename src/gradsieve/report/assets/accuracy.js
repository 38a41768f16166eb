// Accuracy: network by network, and over training.
function accuracyByNetwork({ experiment, width }, colours) {
  const networks = [
    ...new Set(experiment.variants.flatMap((variant) => variant.runs.map((run) => run.network))),
  ];
  networks.sort((one, other) => one.localeCompare(other, undefined, { numeric: true }));
  const middle = (experiment.variants.length - 1) / 2;
  const slots = networks.length * (experiment.variants.length + 1);
  const step = Math.max(6, Math.min(16, (0.75 * width) / slots));
  const series = experiment.variants.map((variant, index) => ({
    name: variant.name,
    type: "scatter",
    symbol: markOf(SYMBOLS, index),
    symbolSize: Math.max(8, step - 1),
    // Beside one another, so that equal accuracies do not hide each other.
    symbolOffset: [(index - middle) * step, 0],
    itemStyle: { color: colourOf(colours, index) },
    data: variant.runs
      .filter((run) => run.accuracy !== null)
      .map((run) => [run.network, run.accuracy]),
  }));
  const means = experiment.variants.map((variant) => {
    const scores = known(variant.runs.map((run) => run.accuracy));
    return scores.length
      ? `${variant.name} ${percent(scores.reduce((sum, one) => sum + one, 0) / scores.length)}`
      : `${variant.name} –`;
  });
  const option = frame(colours, {
    trigger: "item",
    format: percent,
    series,
    xAxis: {
      type: "category",
      data: networks,
      name: "initial network",
      splitLine: { show: true, lineStyle: { color: colours.grid } },
    },
    yAxis: share,
    tooltip: {
      formatter: (point) =>
        `network ${echarts.format.encodeHTML(point.value[0])}<br>${echarts.format.encodeHTML(point.seriesName)}: <b>${percent(point.value[1])}</b>`,
    },
  });
  addChance(option, experiment.chance, colours);
  return {
    option,
    summary: `Mean accuracy over ${networks.length} ${networks.length === 1 ? "network" : "networks"}: ${means.join(", ")}.`,
    table: {
      columns: ["network", "trained with", "accuracy", "finished"],
      rows: networks.flatMap((network) =>
        experiment.variants.flatMap((variant) =>
          variant.runs
            .filter((run) => run.network === network)
            .map((run) => [
              network,
              variant.name,
              percent(run.accuracy),
              run.finished ? "yes" : "no",
            ]),
        ),
      ),
    },
  };
}

function accuracyOverTime(chosen, colours) {
  const chart = overTime(({ history }) => history.accuracy, chosen, colours, share, percent);
  addChance(chart.option, chosen.experiment.chance, colours);
  return chart;
}
