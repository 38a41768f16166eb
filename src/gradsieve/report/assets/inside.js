// Inside one network: activations, loss and gradient.
function activations({ run }, colours) {
  const { probe } = run.history;
  const shown = [
    ["mean size", probe.activation_mean],
    ["median size", probe.activation_median],
    ["saturated share", probe.saturated],
  ];
  return {
    option: frame(colours, {
      xAxis: epochAxis(),
      yAxis: { type: "value", min: 0, max: 1 },
      series: shown.map(([name, column], index) =>
        lineSeries(name, index, colours, zip(probe.epoch, column)),
      ),
    }),
    few: probe.epoch.length < 2,
    summary: probe.epoch.length
      ? `At the end: mean size ${short(last(probe.activation_mean))}, median ${short(last(probe.activation_median))}, ${percent(last(probe.saturated))} saturated.`
      : "No epoch of this run was probed.",
    table: {
      columns: ["epoch", ...shown.map(([name]) => name)],
      rows: probe.epoch.map((number, at) => [
        number,
        ...shown.map(([, column]) => short(column[at])),
      ]),
    },
  };
}

function loss({ run, lossLog }, colours) {
  const { epoch } = run.history;
  const shown = [
    ["training loss", run.history.loss, 0],
    ["validation loss", run.history.validation_loss, 0],
    ["gradient norm", run.history.gradient_norm, 1],
  ];
  // A logarithmic axis has no place for zero.
  const fit = (values) => (lossLog ? values.map((value) => (value > 0 ? value : null)) : values);
  const type = lossLog ? "log" : "value";
  return {
    option: frame(colours, {
      xAxis: epochAxis(),
      yAxis: [
        { type, name: "loss", nameGap: 44, scale: true, axisLabel: { formatter: short } },
        {
          type,
          name: "gradient norm",
          nameGap: 48,
          splitLine: { show: false },
          axisLabel: { formatter: short },
        },
      ],
      series: shown.map(([name, column, axis], index) =>
        lineSeries(name, index, colours, zip(epoch, fit(column)), { yAxisIndex: axis }),
      ),
    }),
    summary: `Training loss ended at ${short(last(run.history.loss))}, validation loss at ${short(last(run.history.validation_loss))}; gradient norm from ${short(smallest(run.history.gradient_norm))} to ${short(largest(run.history.gradient_norm))}.`,
    table: {
      columns: ["epoch", ...shown.map(([name]) => name)],
      rows: epoch.map((number, at) => [number, ...shown.map(([, column]) => short(column[at]))]),
    },
  };
}
