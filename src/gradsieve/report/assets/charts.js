// Every chart of the page, by the name of its figure.
const CHARTS = {
  "accuracy-by-network": accuracyByNetwork,
  "accuracy-over-time": accuracyOverTime,
  q: qOverTime,
  reach,
  prediction,
  updates,
  activations,
  loss,
};
